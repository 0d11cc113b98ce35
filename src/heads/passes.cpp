#include "src/heads/passes.h"

#include "modules/attention/attention.h"
#include "modules/base/error.h"
#include "modules/mixer/attention_in.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/tensor/torch.h"

namespace headlab {

void Examples::describe_examples(Fields& fields, const std::string& what) {
  fields.add("split", split, what).one_of({"train", "valid", "test"});
  fields.add("limit", limit, "the first examples alone").at_least(0).unit("examples").means("0: all");
  fields.add("max_tokens", max_tokens, "tokens of a batch, padding included").at_least(1).unit("tokens");
}

Tensor of_queries(const Tensor& of_text_BT, const AttentionCall& call) {
  if (!of_text_BT.defined() || call.x_BTD.size(1) == of_text_BT.size(1)) return of_text_BT;
  return of_text_BT.index_select(1, call.q_pos);
}

const std::vector<int64_t>& heads_with_weights(const Mixer& mixer) {
  const auto* attention = attention_in(mixer);
  return attention ? attention->heads() : mixer.heads();
}

void refuse_routing(const Model& model, const std::string& who, const std::string& what, const std::string& way_out) {
  for (const auto& [site, mixer] : model.mixers()) {
    if (dynamic_cast<const SeparateHeads*>(mixer))
      throw UsageError(who + ": " + to_string(site) +
                       " has an attention for texts of each length, so that a head has " + what +
                       " of some texts alone" + way_out);
    if (const auto* attention = dynamic_cast<const Attention*>(mixer); attention && attention->routes())
      throw UsageError(who + ": " + to_string(site) + " routes tokens to heads, so that a head has " + what +
                       " of some tokens alone" + way_out);
  }
}

}  // namespace headlab
