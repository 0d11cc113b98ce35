#include "modules/tensor/registry.h"

namespace headlab {

std::vector<std::string> notes_of(const Traits& traits) {
  std::vector<std::string> notes;
  if (traits.self_alone) notes.push_back("in self-attentions alone: it needs queries and keys that share positions");
  if (traits.whole_text) notes.push_back("must see a text in one call: not with model.segments, and not in parts");
  if (traits.needs_heads) notes.push_back("not with experts that each token chooses: it has parameters for each head");
  if (traits.reads_all_groups)
    notes.push_back("each head reads every key/value group: groups go with the last head alone");
  const auto because = [&](const std::string& claim, const std::string& why) {
    if (!why.empty()) notes.push_back(claim + ": " + why);
  };
  because("a masked head is not a removed one", traits.not_masked_equals_removed);
  because("it has no attention weights", traits.no_weights);
  because("other rows of the batch can matter", traits.not_row_independent);
  return notes;
}

}  // namespace headlab
