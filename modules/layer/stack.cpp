#include "modules/layer/stack.h"

#include <torch/torch.h>

namespace headlab {
namespace {

void describe_layers(Fields& fields, int64_t& layers, AttentionOptions& attention, Choice& feed_forward) {
  fields.add("layers", layers, "number of layers").at_least(1);
  fields.add("attention", attention, "self-attention of each layer");
  fields.add("feed_forward", feed_forward, "feed-forward network of each layer");
}

std::optional<std::vector<int64_t>> kept_in(const HeadTable& kept, Stack stack, int64_t layer) {
  const auto found = kept.find(stack);
  if (found == kept.end()) return std::nullopt;
  if (static_cast<std::size_t>(layer) >= found->second.size())
    throw ShapeError("kept heads of " + stack_name(stack) + ": expected a list for each layer, got " +
                     std::to_string(found->second.size()));
  return found->second[layer];
}

}  // namespace

void EncoderOptions::describe(Fields& fields) { describe_layers(fields, layers, attention, feed_forward); }
void SelfDecoderOptions::describe(Fields& fields) { describe_layers(fields, layers, attention, feed_forward); }
void DecoderOptions::describe(Fields& fields) {
  describe_layers(fields, layers, attention, feed_forward);
  fields.add("cross_attention", cross_attention, "attention of each layer to the encoder's output");
}

void StackState::reorder(const Tensor& rows_B) {
  for (auto* states : {&self, &cross})
    for (auto& state : *states) state.reorder(rows_B);
}

Layer::Layer(const LayerStyle& style, Stack self_stack, int64_t layer, const AttentionOptions& self,
             const AttentionOptions* cross, const Choice& feed_forward_choice,
             const std::optional<std::vector<int64_t>>& kept_self, const std::optional<std::vector<int64_t>>& kept_cross)
    : self_site_{self_stack, layer},
      cross_site_{Stack::dec_cross, layer},
      dropout_(style.dropout),
      residual_(residuals().make(style.residual)) {
  const auto norm = [&](const std::string& name) { return register_module(name, norms().make(style.norm, style.width)); };
  self_attention = register_module("self_attention",
                                   std::make_shared<Attention>(self, style.width, style.width, /*cross=*/false, kept_self));
  self_attention_norm = norm("self_attention_norm");
  if (cross) {
    cross_attention = register_module(
        "cross_attention", std::make_shared<Attention>(*cross, style.width, style.width, /*cross=*/true, kept_cross));
    cross_attention_norm = norm("cross_attention_norm");
  }
  feed_forward = register_module("feed_forward", feed_forwards().make(feed_forward_choice, style.width));
  feed_forward_norm = norm("feed_forward_norm");
}

Tensor Layer::forward(Tensor x_BTD, const StackCall& call) {
  auto& run = call.run;
  const auto layer = static_cast<std::size_t>(self_site_.layer);
  x_BTD = run.see(At::residual_in, self_site_, x_BTD);
  x_BTD = residual_->join(x_BTD, *self_attention_norm, dropout_, is_training(), [&](const Tensor& x) {
    return self_attention->forward({self_site_, x, x, call.positions, call.positions, call.self,
                                call.state ? &call.state->self[layer] : nullptr, run});
  });
  if (cross_attention) {
    x_BTD = residual_->join(x_BTD, *cross_attention_norm, dropout_, is_training(), [&](const Tensor& x) {
      return cross_attention->forward({cross_site_, x, call.memory_BSD, call.positions, call.memory_positions, call.cross,
                                   call.state ? &call.state->cross[layer] : nullptr, run});
    });
  }
  x_BTD = run.see(At::residual_mid, self_site_, x_BTD);
  x_BTD = residual_->join(x_BTD, *feed_forward_norm, dropout_, is_training(),
                          [&](const Tensor& x) { return feed_forward->feed(x); });
  return run.see(At::residual_out, self_site_, x_BTD);
}

std::vector<std::pair<Site, Mixer*>> Layer::mixers() const {
  std::vector<std::pair<Site, Mixer*>> all{{self_site_, self_attention.get()}};
  if (cross_attention) all.emplace_back(cross_site_, cross_attention.get());
  return all;
}

LayerStack::LayerStack(const LayerStyle& style, Stack self_stack, int64_t count, const AttentionOptions& self,
                       const AttentionOptions* cross, const Choice& feed_forward, const HeadTable& kept)
    : has_cross_(cross != nullptr) {
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t layer = 0; layer < count; ++layer)
    layers->push_back(std::make_shared<Layer>(style, self_stack, layer, self, cross, feed_forward,
                                              kept_in(kept, self_stack, layer), kept_in(kept, Stack::dec_cross, layer)));
  if (residuals().make(style.residual)->final_norm()) norm = register_module("norm", norms().make(style.norm, style.width));
}

Tensor LayerStack::forward(Tensor x_BTD, const StackCall& call) {
  for (const auto& layer : *layers) x_BTD = layer->as<Layer>()->forward(x_BTD, call);
  return norm ? norm->normalise(x_BTD) : x_BTD;
}

std::vector<std::pair<Site, Mixer*>> LayerStack::mixers() const {
  std::vector<std::pair<Site, Mixer*>> all;
  for (const auto& layer : *layers) {
    const auto of_layer = layer->as<Layer>()->mixers();
    all.insert(all.end(), of_layer.begin(), of_layer.end());
  }
  return all;
}

StackState LayerStack::start() const {
  StackState state;
  state.self.resize(layers->size());
  if (has_cross_) {
    state.cross.resize(layers->size());
    for (auto& cross : state.cross) cross.fixed = true;
  }
  return state;
}

}  // namespace headlab
