#include "modules/layer/whole_text.h"

namespace headlab {

void add_placed(const Choice& mixer, const AttentionOptions& attention, const std::string& prefix,
                std::vector<PlacedEntry>& all) {
  all.push_back({prefix + ".mixer", mixer.type(), mixers().traits(mixer.type()).whole_text});
  for (std::size_t i = 0; i < attention.gates.items.size(); ++i) {
    const auto& type = attention.gates.items[i].type();
    all.push_back({prefix + ".attention.gates[" + std::to_string(i) + "]", type, gates().traits(type).whole_text});
  }
}

void causal_rules(const std::vector<PlacedEntry>& entries, Problems& problems) {
  for (const auto& one : entries)
    if (one.type == "heads_by_length")
      problems.add(one.field, one.type +
                                  " goes by the length of the text, which a decoder does not know. Use it in an "
                                  "encoder: encoder_only, encoder_decoder");
}

void segment_rules(const std::vector<PlacedEntry>& entries, Problems& problems) {
  for (const auto& one : entries)
    if (one.whole_text)
      problems.add(one.field, one.type + " must see a text in one call; it can't go with model.segments");
}

}  // namespace headlab
