#include "modules/model/attentions.h"

#include <algorithm>

#include "modules/model/encoder_decoder.h"
#include "modules/model/single_stack.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// The stacks of a model by that of their self-attentions; of the two kinds of options one is there.
struct StackOf {
  Stack self;
  StackOptions* plain = nullptr;
  DecoderOptions* crossed = nullptr;
  std::vector<LayerParts> parts() const { return plain ? plain->parts() : crossed->parts(); }
};

std::vector<StackOf> stacks_of(Choice& model) {
  auto& options = model.options();
  if (auto* both = dynamic_cast<EncoderDecoderOptions*>(&options))
    return {{Stack::enc_self, &both->encoder, nullptr}, {Stack::dec_self, nullptr, &both->decoder}};
  if (auto* one = dynamic_cast<DecoderOnlyOptions*>(&options)) return {{Stack::dec_self, &one->decoder, nullptr}};
  if (auto* one = dynamic_cast<EncoderOnlyOptions*>(&options)) return {{Stack::enc_self, &one->encoder, nullptr}};
  throw UsageError("model: expected encoder_decoder, decoder_only or encoder_only, whose layers may differ; got " +
                   model.type());
}

/// The override of one layer alone, split from that of several or made as `start`.
template <class Override>
Override& override_of(std::vector<Override>& per_layer, int64_t layer, Override start) {
  for (auto& one : per_layer) {
    const auto found = std::find(one.layers.begin(), one.layers.end(), layer);
    if (found == one.layers.end()) continue;
    if (one.layers.size() == 1) return one;
    one.layers.erase(found);
    start = one;
    break;
  }
  start.layers = {layer};
  return per_layer.emplace_back(std::move(start));
}

/// The options of one attention in its layer's own override.
AttentionOptions& own_options(const StackOf& stack, Site site) {
  if (stack.plain) {
    auto& all = *stack.plain;
    LayerOverride start;
    start.mixer = all.mixer;
    start.attention = all.attention;
    start.feed_forward = all.feed_forward;
    return override_of(all.per_layer, site.layer, std::move(start)).attention;
  }
  auto& all = *stack.crossed;
  CrossLayerOverride start;
  start.mixer = all.mixer;
  start.attention = all.attention;
  start.cross_attention = all.cross_attention;
  start.feed_forward = all.feed_forward;
  auto& one = override_of(all.per_layer, site.layer, std::move(start));
  return site.stack == Stack::dec_cross ? one.cross_attention : one.attention;
}

}  // namespace

std::map<Site, AttentionOptions> attentions_of(const Choice& model) {
  auto copy = model;
  std::map<Site, AttentionOptions> attentions;
  for (const auto& stack : stacks_of(copy)) {
    const auto parts = stack.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto layer = static_cast<int64_t>(i);
      if (parts[i].mixer.type() == "attention") attentions.emplace(Site{stack.self, layer}, parts[i].attention);
      if (parts[i].cross_attention) attentions.emplace(Site{Stack::dec_cross, layer}, *parts[i].cross_attention);
    }
  }
  return attentions;
}

Choice with_attentions(const Choice& model, const std::map<Site, AttentionOptions>& attentions) {
  auto made = model;
  const auto there = attentions_of(model);
  const auto stacks = stacks_of(made);
  for (const auto& [site, options] : attentions) {
    if (!there.count(site))
      throw UsageError(to_string(site) +
                       ": expected an attention that the model's options describe; they have none there");
    for (const auto& stack : stacks)
      if (site.stack == stack.self || (site.stack == Stack::dec_cross && stack.crossed))
        own_options(stack, site) = options;
  }
  return made;
}

}  // namespace headlab
