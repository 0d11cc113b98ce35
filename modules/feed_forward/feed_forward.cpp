#include "modules/feed_forward/feed_forward.h"

#include <torch/torch.h>

namespace headlab {

const FeedForwards& feed_forwards() {
  static const FeedForwards registry =
      FeedForwards("feed_forward", "a network applied to each position by itself")
          .entry<ReluFeedForward, PositionWiseOptions>("relu", "two layers with max(0, x) between", "1706.03762")
          .entry<GeluFeedForward, PositionWiseOptions>("gelu", "two layers with GELU between", "1606.08415");
  return registry;
}
const Catalogue& feed_forward_catalogue() { return feed_forwards().catalogue(); }

void PositionWiseOptions::describe(Fields& fields) {
  fields.add("width", width, "width of the inner layer").at_least(1).means("absent: 4 d_model");
  fields.add("dropout", dropout, "share of inner units dropped in training").at_least(0).below(1);
}

PositionWise::PositionWise(const PositionWiseOptions& options, int64_t width, Activation activation)
    : dropout_(options.dropout), activation_(activation) {
  const auto inner_width = options.width.value_or(4 * width);
  inner = register_module("inner", torch::nn::Linear(width, inner_width));
  outer = register_module("outer", torch::nn::Linear(inner_width, width));
}

Tensor PositionWise::feed(const Tensor& x_BTD) {
  auto h = activation_(torch::nn::functional::linear(x_BTD, inner->weight, inner->bias));
  if (dropout_ > 0) h = torch::dropout(h, dropout_, is_training());
  return torch::nn::functional::linear(h, outer->weight, outer->bias);
}

ReluFeedForward::ReluFeedForward(const PositionWiseOptions& options, int64_t width)
    : PositionWise(options, width, [](const Tensor& x) { return torch::relu(x); }) {}

GeluFeedForward::GeluFeedForward(const PositionWiseOptions& options, int64_t width)
    : PositionWise(options, width, [](const Tensor& x) { return torch::gelu(x); }) {}

}  // namespace headlab
