// 2106.09650: what a model of one head a layer is made of, and what it has in common with the model it came from.
#include "modules/model/unroll.h"

#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/concatenate.h"
#include "modules/attention/project/standard.h"
#include "modules/model/single_stack.h"
#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

Choice unrolled(Choice model) {
  Problems problems;
  unroll_heads(model, problems);
  for (const auto& problem : problems.found) INFO(problem.field << ": " << problem.message);
  REQUIRE(problems.found.empty());
  return model;
}

std::string refused(Choice model) {
  Problems problems;
  unroll_heads(model, problems);
  REQUIRE(!problems.found.empty());
  return problems.found.front().field + ": " + problems.found.front().message;
}

/// One layer of four heads as wide as 64, a feed-forward network of 256.
DecoderOnlyOptions shallow(bool biases) {
  DecoderOnlyOptions options;
  options.d_model = 64;
  options.decoder.layers = 1;
  options.decoder.attention.heads = 4;
  options.decoder.attention.project.as<StandardProjectOptions>().bias = biases;
  options.decoder.attention.mix.as<ConcatenateOptions>().bias = biases;
  options.decoder.feed_forward.choose("gelu");
  options.decoder.feed_forward.as<PositionWiseOptions>().width = 256;
  options.decoder.feed_forward.as<PositionWiseOptions>().bias = biases;
  return options;
}

int64_t of_layers(const Choice& choice) {
  const auto model = make_model(choice);
  int64_t count = 0;
  for (const auto& item : model->named_parameters())
    if (item.key().find("decoder.layers.") == 0) count += item.value().numel();
  return count;
}

}  // namespace

TEST_CASE("a layer's heads as layers have its parameters and, for each further layer, its norms and the biases of sums",
          "[paper-41]") {
  auto options = shallow(false);
  options.norm.choose("rms_norm");  // of one vector
  const auto wide = model_choice("decoder_only", options), deep = unrolled(wide);
  CHECK(deep.as<DecoderOnlyOptions>().decoder.layers == 4);
  CHECK(of_layers(wide) == 49280);
  CHECK(of_layers(deep) == 49664);
  CHECK(of_layers(deep) - of_layers(wide) == 3 * 2 * 64);
  const auto with_biases = model_choice("decoder_only", shallow(true));  // layer norms of two vectors
  CHECK(of_layers(unrolled(with_biases)) - of_layers(with_biases) == 3 * (2 * 2 * 64 + 2 * 64));
}

TEST_CASE(
    "attention and network of a layer are the sums of those that the unrolled layers have, with slices of its weights",
    "[paper-41]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto wide = model_choice("decoder_only", shallow(true)), deep = unrolled(wide);
  const auto whole = make_model(wide), layers = make_model(deep);
  const auto x = noise({2, 5, 64}, "x");
  const auto from = whole->named_parameters();
  auto into = layers->named_parameters();
  const auto of = [&](const torch::nn::Module& model, int64_t layer, const std::string& sublayer) {
    return model.named_modules()["decoder.layers." + std::to_string(layer) + "." + sublayer];
  };
  auto attended = torch::zeros_like(x), fed = torch::zeros_like(x);
  for (int64_t h = 0; h < 4; ++h) {
    const auto set = [&](const std::string& name, const Tensor& slice) {
      into["decoder.layers." + std::to_string(h) + "." + name].copy_(slice);
    };
    const auto all = [&](const std::string& name) { return from["decoder.layers.0." + name]; };
    for (const std::string name : {"weight", "bias"}) {
      const auto qkv = all("self_attention.project." + name);
      set("self_attention.project." + name,
          torch::cat({qkv.narrow(0, 16 * h, 16), qkv.narrow(0, 64 + 16 * h, 16), qkv.narrow(0, 128 + 16 * h, 16)}));
      set("feed_forward.inner." + name, all("feed_forward.inner." + name).narrow(0, 64 * h, 64));
    }
    set("self_attention.mix.weight", all("self_attention.mix.weight").narrow(1, 16 * h, 16));
    set("feed_forward.outer.weight", all("feed_forward.outer.weight").narrow(1, 64 * h, 64));
    for (const std::string name : {"self_attention.mix.bias", "feed_forward.outer.bias"}) {  // of the sum: once
      if (h == 0) set(name, all(name));
      if (h > 0) into["decoder.layers." + std::to_string(h) + "." + name].zero_();
    }
    Forward run;
    attended += std::dynamic_pointer_cast<Mixer>(of(*layers, h, "self_attention"))->forward(call_of(x, run, causal()));
    fed += std::dynamic_pointer_cast<FeedForward>(of(*layers, h, "feed_forward"))->feed(x);
  }
  Forward run;
  CHECK(difference(
            attended,
            std::dynamic_pointer_cast<Mixer>(of(*whole, 0, "self_attention"))->forward(call_of(x, run, causal()))) <
        1e-12);
  CHECK(difference(fed, std::dynamic_pointer_cast<FeedForward>(of(*whole, 0, "feed_forward"))->feed(x)) < 1e-12);
}

TEST_CASE("encoders of another width, cross-attentions and layers that differ are unrolled each by its own heads",
          "[paper-41]") {
  auto options = small_encoder_decoder();
  options.embedding.tie = "target";
  options.encoder.d_model = 12;
  LayerOverride second;
  second.layers = {1};
  second.attention = options.encoder.attention;
  second.attention.heads = 2;
  second.attention.value_width = 3;
  second.feed_forward.choose("swiglu");
  options.encoder.per_layer = {second};
  const auto deep = unrolled(model_choice("encoder_decoder", options));
  const auto& made = deep.as<EncoderDecoderOptions>();
  const auto encoder = made.encoder.parts();
  REQUIRE(encoder.size() == 6);
  for (std::size_t layer = 0; layer < 6; ++layer) {
    CHECK(encoder[layer].attention.heads == 1);
    CHECK(encoder[layer].attention.head_width == (layer < 4 ? 3 : 6));
    CHECK(encoder[layer].feed_forward.as<PositionWiseOptions>().width == (layer < 4 ? 3 : 16));
  }
  CHECK(encoder[5].attention.value_width == 3);
  const auto decoder = made.decoder.parts();
  REQUIRE(decoder.size() == 8);
  CHECK(decoder[7].attention.head_width == 2);
  CHECK(decoder[7].cross_attention->heads == 1);
  CHECK(decoder[7].cross_attention->head_width == 2);
  CHECK(finite(logits_of(*make_model(deep), small_batch()).narrow(1, 0, 5)));
}

TEST_CASE("what can't be cut into heads is told", "[paper-41]") {
  const auto with = [](const std::function<void(DecoderOnlyOptions&)>& change) {
    auto options = small_decoder_only();
    change(options);
    return model_choice("decoder_only", options);
  };
  CHECK(refused(with([](auto& o) { o.decoder.mixer.choose("ngram"); })) ==
        "decoder.mixer: expected the mixer attention, got ngram");
  CHECK(
      refused(with([](auto& o) {
        o.decoder.attention.project.choose("grouped");
        o.decoder.attention.project.template as<GroupedProjectOptions>().groups = 2;
      })) ==
      "decoder.attention.project.groups: expected a group for each of 4 heads, got 2: layers share no keys and values");
  CHECK(refused(with([](auto& o) { o.decoder.attention.then.items.emplace_back(adapter_catalogue, "mix_heads"); })) ==
        "decoder.attention.then[0]: mix_heads mixes heads, which stand in one layer no more");
  CHECK(refused(with([](auto& o) { o.decoder.feed_forward.template as<PositionWiseOptions>().width = 10; })) ==
        "decoder.feed_forward.width: expected a multiple of heads (4), got 10");
  CHECK(refused(with([](auto& o) {
          o.decoder.attention.gates.items.emplace_back(gate_catalogue, "windows");
          o.decoder.attention.gates.items.back().template as<WindowsOptions>().windows = {1, 2, 3, 0};
        })).find("decoder.attention.gates[0].windows: expected one window") == 0);
  auto two = small_encoder_decoder();
  two.decoder.cross_attention.heads = 2;
  CHECK(refused(model_choice("encoder_decoder", two)) ==
        "decoder.cross_attention.heads: expected as many heads as beside it (4), got 2");
}
