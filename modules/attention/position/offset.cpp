#include "modules/attention/position/offset.h"

#include <limits>

#include "modules/attention/rules.h"
#include "modules/tensor/torch.h"

namespace headlab {

Offset::Offset(const OffsetOptions& options, Shape shape) {
  if (shape->cross)
    throw ShapeError(
        "position.offset: expected a self-attention; a cross-attention's queries and keys share no positions");
  if (static_cast<int64_t>(options.offsets.size()) != shape->original_heads)
    throw ShapeError("position.offset: expected an offset for each of " + std::to_string(shape->original_heads) +
                     " heads, got " + std::to_string(options.offsets.size()));
  std::vector<int64_t> of_heads;
  for (auto head : shape->heads) of_heads.push_back(options.offsets[static_cast<std::size_t>(head)]);
  offset = register_buffer("offset", torch::tensor(of_heads, torch::kLong));
}

Tensor Offset::bias(const Tensor&, const Tensor& q_pos, const Tensor& k_pos) {
  const auto back_TS = q_pos.unsqueeze(-1) - k_pos.unsqueeze(-2);  // [T,S] or [B,T,S]
  const auto back = back_TS.dim() == 2 ? back_TS.unsqueeze(0).unsqueeze(0) : back_TS.unsqueeze(1);
  const auto elsewhere = back.ne(offset.unsqueeze(-1).unsqueeze(-1));
  return elsewhere.to(torch::kFloat).masked_fill(elsewhere, -std::numeric_limits<double>::infinity());  // zeros there
}

void offset_rule(const OffsetOptions& options, const AttentionAround& around) {
  if (static_cast<int64_t>(options.offsets.size()) != around.options.heads)
    around.problem("offsets", "expected an offset for each of " + std::to_string(around.options.heads) +
                                  " heads, got " + std::to_string(options.offsets.size()));
}

}  // namespace headlab
