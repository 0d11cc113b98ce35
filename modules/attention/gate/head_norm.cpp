#include "modules/attention/gate/head_norm.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

HeadNorm::HeadNorm(const HeadNormOptions& options, Shape shape) : epsilon_(options.epsilon) {
  gain = register_parameter("gain", torch::empty({shape->H(), shape->value_width}));
}

void HeadNorm::draw(const std::function<at::Generator(const std::string&)>&) { gain.fill_(1); }

Tensor HeadNorm::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall&) {
  const auto mean_square = z_BHTK.square().mean(-1, /*keepdim=*/true);
  return relevance::through(z_BHTK, z_BHTK * torch::rsqrt(mean_square + epsilon_) * gain.unsqueeze(1));
}

}  // namespace headlab
