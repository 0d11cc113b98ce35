#include "modules/attention/head_scale.h"

#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/torch.h"

namespace headlab {

Tensor head_scale(const Forward& run, Site site, const std::vector<int64_t>& heads, int64_t original_heads) {
  const auto found = run.scale.find(site.stack);
  if (found == run.scale.end() || !found->second.defined()) return {};
  const auto& all = found->second;  // [L,H] or [B,L,H]
  if ((all.dim() != 2 && all.dim() != 3) || all.size(-1) < original_heads || all.size(-2) <= site.layer)
    throw wrong_shape(stack_name(site.stack) + " scale",
                      "[layers, heads] or [B, layers, heads] with at least " + std::to_string(site.layer + 1) +
                          " layers and " + std::to_string(original_heads) + " heads",
                      all);
  auto scale = all.select(-2, site.layer);  // [H] or [B,H]
  if (scale.dim() == 2 && run.rows_B.defined()) scale = scale.index_select(0, run.rows_B);
  return pick(scale, -1, heads);
}

}  // namespace headlab
