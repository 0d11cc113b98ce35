#include "modules/model/model.h"

#include <algorithm>
#include <set>

#include "modules/tensor/torch.h"

namespace headlab {

Tensor Model::row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) {
  auto rows = hidden(batch, run).flatten(0, 1);
  if (rows_N.defined()) rows = rows.index_select(0, rows_N);
  return logits_of(rows, run);
}

HeadTable Model::heads() const {
  HeadTable table;
  for (const auto& [site, mixer] : mixers()) {
    auto& layers = table[site.stack];
    layers.resize(std::max<std::size_t>(layers.size(), site.layer + 1));
    layers[site.layer] = mixer->heads();
  }
  return table;
}

std::map<Stack, std::vector<int64_t>> Model::original_heads() const {
  std::map<Stack, std::vector<int64_t>> table;
  for (const auto& [site, mixer] : mixers()) {
    auto& layers = table[site.stack];
    layers.resize(std::max<std::size_t>(layers.size(), site.layer + 1));
    layers[site.layer] = mixer->original_heads();
  }
  return table;
}

void Model::keep(const HeadTable& kept) {
  const auto there = heads();
  for (auto head : heads_of(kept)) check_head(there, head);
  for (const auto& [site, mixer] : mixers()) {
    const auto stack = kept.find(site.stack);
    if (stack != kept.end() && static_cast<std::size_t>(site.layer) < stack->second.size())
      mixer->keep(stack->second[site.layer]);
  }
}

std::map<Stack, Tensor> Model::ones() const {
  std::map<Stack, Tensor> scale;
  for (const auto& [stack, layers] : original_heads())
    scale[stack] = torch::ones({static_cast<int64_t>(layers.size()), *std::max_element(layers.begin(), layers.end())},
                               torch::dtype(dtype()).device(device()));
  return scale;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  std::set<const void*> seen;  // tied parameters count once
  for (const auto& parameter : parameters())
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) count += parameter.numel();
  return count;
}

torch::Device Model::device() const { return parameters().front().device(); }
torch::Dtype Model::dtype() const { return parameters().front().scalar_type(); }

void ModelOptions::describe_shared(Fields& fields, Options& embedding, const std::string& help) {
  fields.add("d_model", d_model, "width of the residual stream").at_least(1);
  fields.add("dropout", dropout, "on the embeddings and on each sublayer's output, before it is added")
      .at_least(0)
      .below(1);
  fields
      .add("dropout_kind", dropout_kind,
           "what falls out together there: each number, a token's (or frame's) vector, or a channel for all of them")
      .one_of(dropout_kinds());
  fields.add("norm", norm, "normalisation of each sublayer");
  fields.add("residual", residual, "where the norm stands");
  fields.add("embedding", embedding, help);
}

Tensor positions_of(const Tensor& ids_BT, int64_t past) {
  if (!recording()) return torch::arange(past, past + ids_BT.size(1), ids_BT.options().dtype(torch::kLong));
  return torch::ones_like(ids_BT.select(0, 0)).cumsum(0) - 1 + past;
}

}  // namespace headlab
