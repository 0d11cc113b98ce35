#include "modules/norm/norm.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

const Norms& norms() {
  static const Norms registry =
      Norms("norm", "normalises each token's vector")
          .entry<LayerNorm, LayerNormOptions>("layer_norm", "mean 0, variance 1, then gamma and beta", "1607.06450")
          .entry<RmsNorm, RmsNormOptions>("rms_norm", "mean square 1, then gamma", "1910.07467")
          .entry<MinMaxNorm, MinMaxOptions>("min_max", "from 0 to 1, then gamma and beta")
          .entry<NoNorm, NoOptions>("none", "no normalisation");
  return registry;
}
const Catalogue& norm_catalogue() { return norms().catalogue(); }

void LayerNormOptions::describe(Fields& fields) {
  fields.add("epsilon", epsilon, "added to the variance").above(0);
  fields.add("affine", affine, "learn gamma and beta");
}

void RmsNormOptions::describe(Fields& fields) {
  fields.add("epsilon", epsilon, "added to the mean square").above(0);
  fields.add("affine", affine, "learn gamma");
}

void MinMaxOptions::describe(Fields& fields) {
  fields.add("epsilon", epsilon, "added to the largest number less the least").above(0);
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

Tensor LayerNorm::normalise(const Tensor& x) {
  return relevance::through(x, torch::layer_norm(x, {width_}, weight, bias, epsilon_));
}

RmsNorm::RmsNorm(const RmsNormOptions& options, int64_t width) : width_(width), epsilon_(options.epsilon) {
  if (options.affine) weight = register_parameter("weight", torch::ones({width}));
}

void RmsNorm::draw(const std::function<at::Generator(const std::string&)>&) {
  if (weight.defined()) weight.fill_(1);
}

Tensor RmsNorm::normalise(const Tensor& x) {
  return relevance::through(
      x, at::rms_norm(x, {width_}, weight.defined() ? std::optional<Tensor>(weight) : std::nullopt, epsilon_));
}

MinMaxNorm::MinMaxNorm(const MinMaxOptions& options, int64_t width) : epsilon_(options.epsilon) {
  if (!options.affine) return;
  weight = register_parameter("weight", torch::ones({width}));
  bias = register_parameter("bias", torch::zeros({width}));
}

void MinMaxNorm::draw(const std::function<at::Generator(const std::string&)>&) {
  if (!weight.defined()) return;
  weight.fill_(1);
  bias.zero_();
}

Tensor MinMaxNorm::normalise(const Tensor& x) {
  const auto least = x.amin(-1, /*keepdim=*/true), largest = x.amax(-1, /*keepdim=*/true);
  const auto y = (x - least) / (largest - least + epsilon_);
  return relevance::through(x, weight.defined() ? y * weight + bias : y);
}

}  // namespace headlab
