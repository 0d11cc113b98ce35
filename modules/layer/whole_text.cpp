#include "modules/layer/whole_text.h"

namespace headlab {

void causal_rules(const Choice& mixer, const AttentionOptions& attention, const std::string& prefix, Problems& problems) {
  const auto refuse = [&](const std::string& field, const Choice& choice) {
    if (choice.type() == "heads_by_length")
      problems.add(prefix + "." + field, choice.type() + " goes by the length of the text, which a decoder does not know. Use it in an encoder: encoder_only, encoder_decoder");
  };
  refuse("mixer", mixer);
  for (std::size_t i = 0; i < attention.gates.items.size(); ++i) refuse("attention.gates[" + std::to_string(i) + "]", attention.gates.items[i]);
}

}  // namespace headlab
