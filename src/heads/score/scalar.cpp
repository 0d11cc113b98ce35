#include "src/heads/score/scalar.h"

#include "modules/attention/attention.h"
#include "modules/attention/gate/scalar.h"
#include "modules/tensor/torch.h"

namespace headlab {

HeadScores ScalarScorer::score(Model& model, const Task&, uint64_t) {
  const torch::NoGradGuard no_grad;
  HeadScores scores;
  scores.method = "scalar";
  for (const auto& [site, mixer] : model.mixers()) {
    Tensor scale_H;
    if (const auto* attention = dynamic_cast<const Attention*>(mixer))
      for (const auto& gate : attention->gate_list())
        if (const auto* scalar = dynamic_cast<const ScalarGate*>(gate.get())) scale_H = scalar->scale().to(torch::kCPU);
    if (!scale_H.defined())
      throw UsageError("scalar: " + to_string(site) + " has no gate \"scalar\" whose scales could be read");
    const auto& heads = mixer->heads();
    for (std::size_t i = 0; i < heads.size(); ++i)
      scores.heads[{site.stack, site.layer, heads[i]}] = scale_H[static_cast<int64_t>(i)].item<double>();
  }
  return scores;
}

}  // namespace headlab
