#include "modules/layer/block.h"

#include "modules/layer/conformer.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// What x is multiplied by in a residual sum, one number a channel: ones at first.
struct ResidualScale : torch::nn::Module, Initialised {
  explicit ResidualScale(int64_t width) { weight = register_parameter("weight", torch::ones({width})); }
  void draw(const std::function<at::Generator(const std::string&)>&) override { weight.fill_(1); }
  Tensor weight;
};

}  // namespace

const Blocks& blocks() {
  static const Blocks registry =
      Blocks("block", "how a layer is put together")
          .entry<Layer, NoOptions>("transformer", "self-attention, cross-attention where there is one, feed-forward",
                                   "1706.03762")
          .entry<Conformer, ConformerOptions>(
              "conformer", "half a feed-forward, self-attention, a convolution over time, half a feed-forward",
              "2005.08100", Traits{.whole_text = true});
  return registry;
}
const Catalogue& block_catalogue() { return blocks().catalogue(); }

void StackState::reorder(const Tensor& rows_B) {
  for (auto* states : {&self, &cross})
    for (auto& state : *states) state.reorder(rows_B);
}

Block::Block(const LayerStyle& style)
    : dropout_{style.dropout, style.dropout_kind}, residual_(residuals().make(style.residual)) {}

Layer::Layer(const NoOptions&, const BlockPlace& place)
    : Block(place.style),
      self_site_{place.stack, place.layer},
      cross_site_{Stack::dec_cross, place.layer},
      segments_(place.style.segments) {
  const auto& [style, stack, layer, parts, memory_width, kept_self, kept_cross] = place;
  self_attention = register_module(
      "self_attention", headlab::mixers().make(parts.mixer, MixerPlace{parts.attention, style.width, kept_self,
                                                                       stack == Stack::dec_self}));
  self_attention_norms_ = norms_of(style, "self_attention", stack);
  if (parts.cross_attention) {
    cross_attention = register_module(
        "cross_attention",
        std::make_shared<Attention>(*parts.cross_attention, style.width, memory_width, /*cross=*/true, kept_cross));
    cross_attention_norms_ = norms_of(style, "cross_attention", stack);
  }
  feed_forward = register_module("feed_forward", feed_forwards().make(parts.feed_forward, style.width));
  if (feed_forward->is_there()) feed_forward_norms_ = norms_of(style, "feed_forward", stack);
}

SublayerNorms Block::norms_of(const LayerStyle& style, const std::string& sublayer, Stack stack) {
  const auto make = [&](const std::string& name) {
    return register_module(name, norms().make(style.norm, style.width));
  };
  SublayerNorms made;
  made.norm = make(sublayer + "_norm");
  if (residual_->has_second_norm()) made.after = make(sublayer + "_norm_after");
  if (residual_->has_scale())
    made.scale_D = register_module(sublayer + "_scale", std::make_shared<ResidualScale>(style.width))->weight;
  made.chain = stack_name(stack);
  return made;
}

Tensor Layer::forward(Tensor x_BTD, const StackCall& call) {
  auto& run = call.run;
  const auto layer = static_cast<std::size_t>(self_site_.layer);
  x_BTD = run.see(At::residual_in, self_site_, x_BTD);
  x_BTD = residual_->join(
      x_BTD, self_attention_norms_, dropout_, is_training(),
      [&](const Tensor& x) {
        const AttentionCall of{self_site_,
                               x,
                               x,
                               call.positions,
                               call.positions,
                               call.self,
                               call.state ? &call.state->self[layer] : nullptr,
                               run};
        return segments_.length ? attend_in_segments(*self_attention, segments_, of) : self_attention->forward(of);
      },
      run);
  if (cross_attention) {
    x_BTD = residual_->join(
        x_BTD, cross_attention_norms_, dropout_, is_training(),
        [&](const Tensor& x) {
          return cross_attention->forward({cross_site_, x, call.memory_BSD, call.positions, call.memory_positions,
                                           call.cross, call.state ? &call.state->cross[layer] : nullptr, run});
        },
        run);
  }
  x_BTD = run.see(At::residual_mid, self_site_, x_BTD);
  if (feed_forward->is_there())
    x_BTD = residual_->join(
        x_BTD, feed_forward_norms_, dropout_, is_training(), [&](const Tensor& x) { return feed_forward->feed(x); },
        run);
  return run.see(At::residual_out, self_site_, x_BTD);
}

int64_t Layer::flops(int64_t T, int64_t memory, bool causal) const {
  return (segments_.length ? flops_in_segments(*self_attention, segments_, T) : self_attention->flops(T, T, causal)) +
         (cross_attention ? cross_attention->flops(T, memory, false) : 0) + feed_forward->flops(T);
}

std::vector<std::pair<Site, Mixer*>> Layer::mixers() const {
  std::vector<std::pair<Site, Mixer*>> all{{self_site_, self_attention.get()}};
  if (cross_attention) all.emplace_back(cross_site_, cross_attention.get());
  return all;
}

}  // namespace headlab
