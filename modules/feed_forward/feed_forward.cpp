#include "modules/feed_forward/feed_forward.h"

#include <algorithm>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

torch::nn::Linear linear(int64_t in, int64_t out, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

Tensor product(const torch::nn::Linear& layer, const Tensor& x) {
  return relevance::linear(x, layer->weight, layer->bias);
}

}  // namespace

const FeedForwards& feed_forwards() {
  static const FeedForwards registry =
      FeedForwards("feed_forward", "a network applied to each position by itself")
          .entry<ReluFeedForward, PositionWiseOptions>("relu", "two layers with max(0, x) between", "1706.03762")
          .entry<GeluFeedForward, PositionWiseOptions>("gelu", "two layers with GELU between", "1606.08415")
          .entry<SwiGlu, SwiGluOptions>("swiglu", "two layers, the inner one gated by swish of another", "2002.05202")
          .entry<NoFeedForward, NoOptions>(
              "none", "no such sublayer (attention may have vectors of its own: the adapter persistent)", "1907.01470");
  return registry;
}
const Catalogue& feed_forward_catalogue() { return feed_forwards().catalogue(); }

void PositionWiseOptions::describe(Fields& fields) { describe_all(fields, "absent: 4 d_model"); }
void SwiGluOptions::describe(Fields& fields) { describe_all(fields, "absent: 8 d_model / 3, rounded down"); }

void PositionWiseOptions::describe_all(Fields& fields, const std::string& absent_width) {
  fields.add("width", width, "width of the inner layer").at_least(1).means(absent_width);
  fields.add("dropout", dropout, "share of inner units dropped in training").at_least(0).below(1);
  fields.add("bias", bias, "add learned biases");
}

PositionWise::PositionWise(const PositionWiseOptions& options, int64_t width, Activation activation)
    : dropout_(options.dropout), activation_(activation) {
  const auto inner_width = options.width.value_or(4 * width);
  inner = register_module("inner", linear(width, inner_width, options.bias));
  outer = register_module("outer", linear(inner_width, width, options.bias));
}

Tensor PositionWise::feed(const Tensor& x_BTD) {
  const auto a = product(inner, x_BTD);
  auto h = relevance::through(a, activation_(a));
  if (dropout_ > 0) h = torch::dropout(h, dropout_, is_training());
  return product(outer, h);
}

int64_t PositionWise::flops(int64_t T) const { return 2 * T * (inner->weight.numel() + outer->weight.numel()); }

ReluFeedForward::ReluFeedForward(const PositionWiseOptions& options, int64_t width)
    : PositionWise(options, width, [](const Tensor& x) { return torch::relu(x); }) {}

GeluFeedForward::GeluFeedForward(const PositionWiseOptions& options, int64_t width)
    : PositionWise(options, width, [](const Tensor& x) { return torch::gelu(x); }) {}

SwiGlu::SwiGlu(const SwiGluOptions& options, int64_t width) : dropout_(options.dropout) {
  const auto inner_width = options.width.value_or(std::max<int64_t>(8 * width / 3, 1));
  gate = register_module("gate", linear(width, inner_width, options.bias));
  inner = register_module("inner", linear(width, inner_width, options.bias));
  outer = register_module("outer", linear(inner_width, width, options.bias));
}

Tensor SwiGlu::feed(const Tensor& x_BTD) {
  const auto gates = torch::silu(product(gate, x_BTD)), a = product(inner, x_BTD);
  auto h = relevance::through(a, gates * a);
  if (dropout_ > 0) h = torch::dropout(h, dropout_, is_training());
  return product(outer, h);
}

int64_t SwiGlu::flops(int64_t T) const {
  return 2 * T * (gate->weight.numel() + inner->weight.numel() + outer->weight.numel());
}

}  // namespace headlab
