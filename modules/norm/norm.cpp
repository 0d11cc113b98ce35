#include "modules/norm/norm.h"

#include <torch/torch.h>

namespace headlab {

const Norms& norms() {
  static const Norms registry = Norms("norm", "normalises each token's vector")
                                    .entry<LayerNorm, LayerNormOptions>("layer_norm", "mean 0, variance 1, then gamma and beta", "1607.06450")
                                    .entry<NoNorm, NoOptions>("none", "no normalisation");
  return registry;
}
const Catalogue& norm_catalogue() { return norms().catalogue(); }

void LayerNormOptions::describe(Fields& fields) {
  fields.add("epsilon", epsilon, "added to the variance").above(0);
  fields.add("affine", affine, "learn gamma and beta");
}

LayerNorm::LayerNorm(const LayerNormOptions& options, int64_t width) : width_(width), epsilon_(options.epsilon) {
  if (!options.affine) return;
  weight = register_parameter("weight", torch::ones({width}));
  bias = register_parameter("bias", torch::zeros({width}));
}

void LayerNorm::draw(const std::function<at::Generator(const std::string&)>&) {
  if (!weight.defined()) return;
  weight.fill_(1);
  bias.zero_();
}

Tensor LayerNorm::normalise(const Tensor& x) { return torch::layer_norm(x, {width_}, weight, bias, epsilon_); }

}  // namespace headlab
