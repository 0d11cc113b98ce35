#include "src/heads/score/gradient.h"

#include "modules/tensor/torch.h"
#include "src/heads/scale.h"
#include "src/task/token_loss.h"

namespace headlab {

void GradientScorerOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("absolute", absolute, "what the absolute value is taken of").one_of({"example", "batch"});
  fields.add("normalise", normalise, "divide by the l2 norm over the heads of a layer, or not")
      .one_of({"layer", "none"});
}

HeadScores GradientScorer::score(Model& model, const Task& task, uint64_t) {
  Mode evaluating(model, false);
  std::map<Stack, Tensor> total;
  for (const auto& [stack, ones] : model.ones()) total[stack] = torch::zeros_like(ones, torch::kFloat64);
  int64_t examples = 0;
  for (const auto& chosen : options_.batches(task)) {
    const auto batch = task.batch(options_.split, chosen, model.device());
    const auto B = static_cast<int64_t>(chosen.size());
    Forward run;
    std::vector<Tensor> scales;
    for (const auto& [stack, ones] : model.ones()) {
      auto scale = options_.absolute == "example" ? ones.unsqueeze(0).repeat({B, 1, 1}) : ones;
      scale.requires_grad_();
      run.scale[stack] = scale;
      scales.push_back(scale);
    }
    const auto loss = token_loss(model, batch, 0, run);
    const auto gradients = torch::autograd::grad({loss.sum}, scales, {}, std::nullopt, false, /*allow_unused=*/true);
    std::size_t i = 0;
    for (auto& [stack, sum] : total) {
      const auto& gradient = gradients[i++];
      if (!gradient.defined()) continue;
      const auto absolute = gradient.to(torch::kFloat64).abs();
      sum += absolute.dim() == 3 ? absolute.sum(0) : absolute;
    }
    examples += options_.absolute == "example" ? B : 1;
  }
  for (auto& [stack, sum] : total) {
    sum /= static_cast<double>(std::max<int64_t>(examples, 1));
    if (options_.normalise == "layer") sum /= sum.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-300);
  }
  return scores_of(total, model.heads(), "gradient");
}

}  // namespace headlab
