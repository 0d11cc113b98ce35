#include "src/train/profile.h"

#include "modules/layer/admin.h"
#include "modules/tensor/torch.h"
#include "src/task/token_loss.h"

namespace headlab {

bool profile_residual(Model& model, const Choice& residual, const Task& task, const BatchOptions& batch,
                      uint64_t seed) {
  if (residual.type() != "admin") return false;
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto [sources, targets] = task.lengths("train");
  BatchOrder order(sources.empty() ? targets : sources, targets, batch, seed);
  std::vector<Forward> passes(static_cast<std::size_t>(residual.as<AdminOptions>().profile_batches));
  for (auto& pass : passes) {
    begin_profile(pass);
    model.hidden(task.batch("train", order.next(), model.device()).inputs, pass);
  }
  return apply_profile(passes);
}

}  // namespace headlab
