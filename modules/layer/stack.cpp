#include "modules/layer/stack.h"

#include <functional>
#include <map>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

const char* const lets_see = "what lets the tokens of a layer see each other";
const char* const of_each = "self-attention of each layer";
const char* const fed_by = "feed-forward network of each layer";
const char* const looks = "attention of each layer to the encoder's output";

template <class Override>
void describe_per_layer(Fields& fields, std::vector<Override>& per_layer, std::function<Override()> start) {
  fields.add("per_layer", per_layer, std::move(start),
             "layers that differ: their numbers and what is laid over the options that stand beside this list");
}

void describe_numbers(Fields& fields, std::vector<int64_t>& layers) {
  fields.add("layers", layers, "numbers of the layers, the first is 0").at_least(0).required();
}

std::string expected_layer(int64_t layers, int64_t got) {
  return "expected a layer from 0 to " + std::to_string(layers - 1) + ", got " + std::to_string(got);
}

template <class Override>
void number_rules(const std::vector<Override>& per_layer, int64_t layers, Problems& problems) {
  std::map<int64_t, std::size_t> seen;  // layer: in which override
  for (std::size_t i = 0; i < per_layer.size(); ++i) {
    const auto at = "per_layer[" + std::to_string(i) + "].layers";
    const auto& numbers = per_layer[i].layers;
    if (numbers.empty()) problems.add(at, "expected at least one layer");
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      const auto place = at + "[" + std::to_string(j) + "]";
      if (numbers[j] >= layers)
        problems.add(place, expected_layer(layers, numbers[j]));
      else if (!seen.emplace(numbers[j], i).second)
        problems.add(place, "layer " + std::to_string(numbers[j]) + " stands in per_layer[" +
                                std::to_string(seen[numbers[j]]) + "] already; say all about a layer in one place");
    }
  }
}

// The parts of each layer, those in `per_layer` as `of` makes them.
template <class Override>
std::vector<LayerParts> parts_of(int64_t layers, const LayerParts& common, const std::vector<Override>& per_layer,
                                 const std::function<LayerParts(const Override&)>& of) {
  std::vector<LayerParts> parts(static_cast<std::size_t>(layers), common);
  for (const auto& one : per_layer)
    for (auto layer : one.layers) {
      if (layer < 0 || layer >= layers) throw ShapeError("per_layer: " + expected_layer(layers, layer));
      parts[static_cast<std::size_t>(layer)] = of(one);
    }
  return parts;
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

void LayerOverride::describe(Fields& fields) {
  describe_numbers(fields, layers);
  fields.add("mixer", mixer, "what lets the tokens of these layers see each other");
  fields.add("attention", attention, "self-attention of these layers");
  fields.add("feed_forward", feed_forward, "feed-forward network of these layers");
}

void CrossLayerOverride::describe(Fields& fields) {
  describe_numbers(fields, layers);
  fields.add("mixer", mixer, "what lets the tokens of these layers see each other");
  fields.add("attention", attention, "self-attention of these layers");
  fields.add("cross_attention", cross_attention, "attention of these layers to the encoder's output");
  fields.add("feed_forward", feed_forward, "feed-forward network of these layers");
}

void StackOptions::describe(Fields& fields) {
  fields.add("layers", layers, "number of layers").at_least(1);
  fields.add("block", block, "how a layer is put together");
  fields.add("mixer", mixer, lets_see);
  fields.add("attention", attention, of_each);
  fields.add("feed_forward", feed_forward, fed_by);
  describe_per_layer<LayerOverride>(fields, per_layer, [this] {
    LayerOverride start;
    start.mixer = mixer;
    start.attention = attention;
    start.feed_forward = feed_forward;
    return start;
  });
}

void EncoderOptions::describe(Fields& fields) {
  fields.add("d_model", d_model, "width of the encoder's residual stream")
      .at_least(1)
      .means("absent: the model's d_model");
  StackOptions::describe(fields);
}

void DecoderOptions::describe(Fields& fields) {
  fields.add("layers", layers, "number of layers").at_least(1);
  fields.add("mixer", mixer, lets_see);
  fields.add("attention", attention, of_each);
  fields.add("feed_forward", feed_forward, fed_by);
  fields.add("cross_attention", cross_attention, looks);
  describe_per_layer<CrossLayerOverride>(fields, per_layer, [this] {
    CrossLayerOverride start;
    start.mixer = mixer;
    start.attention = attention;
    start.cross_attention = cross_attention;
    start.feed_forward = feed_forward;
    return start;
  });
}

void StackOptions::rules(Problems& problems) const { number_rules(per_layer, layers, problems); }
void DecoderOptions::rules(Problems& problems) const { number_rules(per_layer, layers, problems); }

std::vector<LayerParts> StackOptions::parts() const {
  return parts_of<LayerOverride>(layers, {block, mixer, attention, std::nullopt, feed_forward}, per_layer,
                                 [this](const LayerOverride& one) {
                                   return LayerParts{block, one.mixer, one.attention, std::nullopt, one.feed_forward};
                                 });
}

std::vector<LayerParts> DecoderOptions::parts() const {
  const Choice block(block_catalogue, "transformer");
  return parts_of<CrossLayerOverride>(
      layers, {block, mixer, attention, cross_attention, feed_forward}, per_layer, [&](const CrossLayerOverride& one) {
        return LayerParts{block, one.mixer, one.attention, one.cross_attention, one.feed_forward};
      });
}

void stack_rules(const StackOptions& options, int64_t width, const std::string& prefix, Problems& problems) {
  mixer_rules(options.mixer, options.attention, width, prefix, problems);
  for (std::size_t i = 0; i < options.per_layer.size(); ++i) {
    const auto at = prefix + ".per_layer[" + std::to_string(i) + "].";
    mixer_rules(options.per_layer[i].mixer, options.per_layer[i].attention, width, at.substr(0, at.size() - 1),
                problems);
  }
}

void stack_rules(const DecoderOptions& options, int64_t width, const std::string& prefix, Problems& problems) {
  mixer_rules(options.mixer, options.attention, width, prefix, problems);
  attention_rules(options.cross_attention, width, true, prefix + ".cross_attention", problems);
  for (std::size_t i = 0; i < options.per_layer.size(); ++i) {
    const auto at = prefix + ".per_layer[" + std::to_string(i) + "].";
    mixer_rules(options.per_layer[i].mixer, options.per_layer[i].attention, width, at.substr(0, at.size() - 1),
                problems);
    attention_rules(options.per_layer[i].cross_attention, width, true, at + "cross_attention", problems);
  }
}

LayerStack::LayerStack(const LayerStyle& style, Stack self_stack, const std::vector<LayerParts>& parts,
                       const HeadTable& kept, int64_t memory_width)
    : has_cross_(!parts.empty() && parts.front().cross_attention) {
  layers = register_module("layers", torch::nn::ModuleList());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    layers->push_back(blocks().make(
        parts[i].block, BlockPlace{style, self_stack, layer, parts[i], memory_width ? memory_width : style.width,
                                   kept_in(kept, self_stack, layer),
                                   has_cross_ ? kept_in(kept, Stack::dec_cross, layer) : std::nullopt}));
  }
  if (residuals().make(style.residual)->final_norm())
    norm = register_module("norm", norms().make(style.norm, style.width));
}

int64_t LayerStack::flops(int64_t T, int64_t memory, bool causal) const {
  int64_t count = 0;
  for (const auto& layer : *layers) count += layer->as<Block>()->flops(T, memory, causal);
  return count;
}

Tensor LayerStack::forward(Tensor x_BTD, const StackCall& call) {
  for (const auto& layer : *layers) x_BTD = layer->as<Block>()->forward(x_BTD, call);
  return norm ? norm->normalise(x_BTD) : x_BTD;
}

std::vector<std::pair<Site, Mixer*>> LayerStack::mixers() const {
  std::vector<std::pair<Site, Mixer*>> all;
  for (const auto& layer : *layers) {
    const auto of_layer = layer->as<Block>()->mixers();
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
