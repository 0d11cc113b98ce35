#include "src/heads/scale.h"

#include "modules/tensor/torch.h"

namespace headlab {

std::map<Stack, Tensor> mask_scale(const Model& model, const HeadSet& masked) {
  const auto there = model.heads();
  auto scale = model.ones();
  for (auto head : masked) {
    check_head(there, head);
    scale[head.stack].index_put_({head.layer, head.head}, 0);
  }
  return scale;
}

HeadScores scores_of(const std::map<Stack, Tensor>& values, const HeadTable& there, const std::string& method) {
  HeadScores scores;
  scores.method = method;
  std::map<Stack, Tensor> on_cpu;
  for (const auto& [stack, tensor] : values) on_cpu[stack] = tensor.detach().to(torch::kCPU, torch::kFloat64);
  for (auto head : heads_of(there))
    scores.heads[head] = on_cpu.at(head.stack).index({head.layer, head.head}).item<double>();
  return scores;
}

}  // namespace headlab
