#include "modules/model/unroll.h"

#include "modules/attention/project/standard.h"
#include "modules/model/encoder_decoder.h"
#include "modules/model/frame_encoder.h"
#include "modules/model/single_stack.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Cuts the options of one layer at a time.
struct HeadByHead {
  int64_t width;
  Problems& problems;

  void attention(AttentionOptions& attention, const std::string& place) const {
    const auto heads = attention.heads;
    if (attention.project.type() == "grouped") {
      auto& groups = attention.project.as<GroupedProjectOptions>().groups;
      if (groups != heads)
        problems.add(place + ".project.groups", "expected a group for each of " + std::to_string(heads) +
                                                    " heads, got " + std::to_string(groups) +
                                                    ": layers share no keys and values");
      groups = 1;
    }
    for (std::size_t i = 0; i < attention.then.items.size(); ++i)
      if (adapters().traits(attention.then.items[i].type()).reads_all_groups)
        problems.add(place + ".then[" + std::to_string(i) + "]",
                     attention.then.items[i].type() + " mixes heads, which stand in one layer no more");
    attention.head_width = attention.head_width.value_or(width / heads);
    attention.heads = 1;
  }

  void feed_forward(Choice& network, int64_t heads, const std::string& place) const {
    if (network.type() == "none") return;
    auto* options = dynamic_cast<PositionWiseOptions*>(&network.options());
    if (!options) return problems.add(place, network.type() + " can't be cut into a part for each head");
    const auto inner = options->width.value_or(network.type() == "swiglu" ? 8 * width / 3 : 4 * width);
    if (inner % heads != 0)
      problems.add(place + ".width",
                   "expected a multiple of heads (" + std::to_string(heads) + "), got " + std::to_string(inner));
    options->width = std::max<int64_t>(inner / heads, 1);
  }

  template <class Layer>
  void layer(Layer& layer, const std::string& place) const {
    const auto heads = layer.attention.heads;
    if (layer.mixer.type() != "attention")
      problems.add(place + ".mixer", "expected the mixer attention, got " + layer.mixer.type());
    attention(layer.attention, place + ".attention");
    if constexpr (requires { layer.cross_attention; }) {
      if (layer.cross_attention.heads != heads)
        problems.add(place + ".cross_attention.heads", "expected as many heads as beside it (" + std::to_string(heads) +
                                                           "), got " + std::to_string(layer.cross_attention.heads));
      attention(layer.cross_attention, place + ".cross_attention");
    }
    feed_forward(layer.feed_forward, heads, place + ".feed_forward");
  }

  template <class Stack>
  void stack(Stack& stack, const std::string& place) const {
    std::vector<int64_t> first{0};  // of each layer: the first that it becomes
    for (const auto& part : stack.parts()) {
      if (part.block.type() != "transformer")
        return problems.add(place + ".block", "expected the block transformer, got " + part.block.type());
      first.push_back(first.back() + part.attention.heads);
    }
    layer(stack, place);
    for (std::size_t i = 0; i < stack.per_layer.size(); ++i) {
      auto& one = stack.per_layer[i];
      const auto before = std::move(one.layers);
      one.layers.clear();
      for (const auto l : before)
        for (auto made = first[static_cast<std::size_t>(l)]; made < first[static_cast<std::size_t>(l) + 1]; ++made)
          one.layers.push_back(made);
      layer(one, place + ".per_layer[" + std::to_string(i) + "]");
    }
    stack.layers = first.back();
  }
};

}  // namespace

void unroll_heads(Choice& model, Problems& problems) {
  auto* options = &model.options();
  const auto unroll = [&](auto& stack, int64_t width, const std::string& place) {
    HeadByHead{width, problems}.stack(stack, place);
  };
  if (auto* pair = dynamic_cast<EncoderDecoderOptions*>(options)) {
    unroll(pair->encoder, pair->encoder_width(), "encoder");
    unroll(pair->decoder, pair->d_model, "decoder");
  } else if (auto* decoder = dynamic_cast<DecoderOnlyOptions*>(options)) {
    unroll(decoder->decoder, decoder->d_model, "decoder");
  } else if (auto* encoder = dynamic_cast<EncoderOnlyOptions*>(options)) {
    unroll(encoder->encoder, encoder->d_model, "encoder");
  } else if (auto* frames = dynamic_cast<FrameEncoderOptions*>(options)) {
    unroll(frames->encoder, frames->d_model, "encoder");
  } else {
    problems.add("type", model.type() + " has no layers that are known here");
  }
  if (problems.found.empty()) options->rules(problems);
}

}  // namespace headlab
