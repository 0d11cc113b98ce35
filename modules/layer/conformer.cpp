#include "modules/layer/conformer.h"

#include <cmath>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void ConformerOptions::describe(Fields& fields) {
  fields.add("kernel", kernel, "tokens that the convolution sees, itself in the middle").at_least(1).unit("tokens");
}

void ConformerOptions::rules(Problems& problems) const {
  if (kernel % 2 == 0)
    problems.add("kernel",
                 "expected an odd number, so that a token stands in the middle; got " + std::to_string(kernel));
}

DepthwiseConvolution::DepthwiseConvolution(int64_t width, int64_t kernel) {
  weight = register_parameter("weight", torch::empty({width, 1, kernel}));
  bias = register_parameter("bias", torch::zeros({width}));
}

void DepthwiseConvolution::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto bound = 1 / std::sqrt(static_cast<double>(weight.size(2)));
  weight.copy_(torch::empty(weight.sizes(), torch::kFloat64).uniform_(-bound, bound, generator("weight")));
  bias.zero_();
}

Tensor DepthwiseConvolution::convolve(const Tensor& x_BTD) const {
  return torch::conv1d(x_BTD.transpose(1, 2), weight, bias, /*stride=*/1, /*padding=*/weight.size(2) / 2,
                       /*dilation=*/1,
                       /*groups=*/weight.size(0))
      .transpose(1, 2);
}

ConvolutionModule::ConvolutionModule(const LayerStyle& style, int64_t kernel) {
  inner = register_module("inner", torch::nn::Linear(style.width, 2 * style.width));
  depthwise = register_module("depthwise", std::make_shared<DepthwiseConvolution>(style.width, kernel));
  norm = register_module("norm", norms().make(style.norm, style.width));
  outer = register_module("outer", torch::nn::Linear(style.width, style.width));
}

Tensor ConvolutionModule::forward(const Tensor& x_BTD, const Tensor& mask_BT) {
  const auto parts = relevance::linear(x_BTD, inner->weight, inner->bias).chunk(2, -1);
  auto h = relevance::through(parts[0], parts[0] * torch::sigmoid(parts[1]));
  if (mask_BT.defined()) h = h.masked_fill(mask_BT.logical_not().unsqueeze(-1), 0);
  h = norm->normalise(depthwise->convolve(h));
  return relevance::linear(relevance::through(h, torch::silu(h)), outer->weight, outer->bias);
}

int64_t ConvolutionModule::flops(int64_t T) const {
  return 2 * T * (inner->weight.numel() + outer->weight.numel()) + depthwise->flops(T);
}

Conformer::Conformer(const ConformerOptions& options, const BlockPlace& place)
    : Block(place.style), site_{place.stack, place.layer} {
  const auto& style = place.style;
  if (place.parts.cross_attention)
    throw ShapeError("block conformer: expected a stack without cross-attention; it sees tokens on both sides");
  self_attention = register_module(
      "self_attention",
      headlab::mixers().make(place.parts.mixer, MixerPlace{place.parts.attention, style.width, place.kept_self}));
  self_attention_norms_ = norms_of(style, "self_attention", place.stack);
  convolution = register_module("convolution", std::make_shared<ConvolutionModule>(style, options.kernel));
  convolution_norms_ = norms_of(style, "convolution", place.stack);
  feed_forward = register_module("feed_forward", feed_forwards().make(place.parts.feed_forward, style.width));
  feed_forward_after =
      register_module("feed_forward_after", feed_forwards().make(place.parts.feed_forward, style.width));
  if (feed_forward->is_there()) {
    feed_forward_norms_ = norms_of(style, "feed_forward", place.stack);
    feed_forward_after_norms_ = norms_of(style, "feed_forward_after", place.stack);
  }
  norm = register_module("norm", norms().make(style.norm, style.width));
}

Tensor Conformer::forward(Tensor x_BTD, const StackCall& call) {
  if (call.self.causal || call.state)
    throw ShapeError(
        "block conformer: expected a text that is seen whole, got one that is read causally; its convolution sees what "
        "follows");
  auto& run = call.run;
  const auto add = [&](const SublayerNorms& norms, const std::function<Tensor(const Tensor&)>& f) {
    x_BTD = residual_->join(x_BTD, norms, dropout_, is_training(), f, run);
  };
  const auto half_step = [&](const SublayerNorms& norms, FeedForward& network) {
    if (network.is_there())
      add(norms, [&](const Tensor& x) {
        const auto y = network.feed(x);
        return relevance::through(y, y / 2);
      });
  };
  x_BTD = run.see(At::residual_in, site_, x_BTD);
  half_step(feed_forward_norms_, *feed_forward);
  add(self_attention_norms_, [&](const Tensor& x) {
    return self_attention->forward({site_, x, x, call.positions, call.positions, call.self, nullptr, run});
  });
  x_BTD = run.see(At::residual_mid, site_, x_BTD);
  add(convolution_norms_, [&](const Tensor& x) { return convolution->forward(x, call.self.key_mask_BS); });
  half_step(feed_forward_after_norms_, *feed_forward_after);
  return run.see(At::residual_out, site_, norm->normalise(x_BTD));
}

int64_t Conformer::flops(int64_t T, int64_t, bool causal) const {
  return self_attention->flops(T, T, causal) + convolution->flops(T) + feed_forward->flops(T) +
         feed_forward_after->flops(T);
}

}  // namespace headlab
