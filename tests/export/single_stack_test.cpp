#include "src/export/single_stack.h"

#include <torch/script.h>

#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/project/standard.h"
#include "modules/mixer/ngram.h"
#include "modules/mixer/ngram_and_attention.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

const TextIds toy_ids{0, 1, 2};

/// Grouped heads with RoPE and two windows.
AttentionOptions busy_attention() {
  auto options = small_attention();
  options.project = Choice(project_catalogue, "grouped");
  options.project.as<GroupedProjectOptions>().groups = 2;
  options.position = Choice(position_catalogue, "rope");
  Choice windows(gate_catalogue, "windows");
  windows.as<WindowsOptions>().windows = {3, 0, 3, 0};
  options.gates.items.push_back(windows);
  return options;
}

/// A first layer of n-grams, and that attention after it.
DecoderOnlyOptions ngram_then_attention() {
  auto options = small_decoder_only(busy_attention());
  LayerOverride first;
  first.layers = {0};
  first.mixer.choose("ngram");
  first.mixer.as<NgramOptions>().n = 4;
  first.mixer.as<NgramOptions>().heads = small_heads;
  first.attention = options.decoder.attention;
  first.feed_forward = options.decoder.feed_forward;
  options.decoder.per_layer = {first};
  return options;
}

/// Two heads of that attention and two of n-grams, in each layer.
DecoderOnlyOptions ngram_and_attention() {
  auto options = small_decoder_only(busy_attention());
  options.decoder.mixer.choose("ngram_and_attention");
  options.decoder.mixer.as<NgramAndAttentionOptions>().heads = 2;
  return options;
}

}  // namespace

TEST_CASE(
    "an exported decoder gives the model's logits at any batch and length, and writes what greedy search writes") {
  Scratch folder;
  for (const auto& options : {small_decoder_only(busy_attention()), ngram_then_attention(), ngram_and_attention()})
    for (const bool pruned : {false, true}) {
      const auto model = make_model(model_choice("decoder_only", options));
      if (pruned) model->keep({{Stack::dec_self, {{1, 2}, {}}}});
      const auto path = folder / "decoder.pt";
      const auto report = export_single_stack(*model, path, toy_ids, {{"spec.json", "{}"}});
      CHECK(report.max_difference < 1e-5);
      auto file = torch::jit::load(path.string());
      const auto prompt = random_ids({3, 4}, small_vocabulary, "prompt");
      const auto begun = torch::cat({torch::full({3, 1}, toy_ids.bos, torch::kLong), prompt}, 1);
      const auto got = file.get_method("generate_ids")({begun, int64_t{10}}).toTensor();

      SearchOptions search_options;
      search_options.beam = 1;
      search_options.max_length = 10;
      Forward run;
      Batch batch;
      batch.target_BT = prompt;
      const auto found = search(*model, batch, toy_ids, search_options, run);
      for (int64_t b = 0; b < 3; ++b) {
        std::vector<int64_t> written;
        for (int64_t t = 0; t < got.size(1); ++t)
          if (const auto id = got[b][t].item<int64_t>(); id != toy_ids.pad) written.push_back(id);
        CHECK(written == found[static_cast<std::size_t>(b)].front().ids);
      }
    }
}

TEST_CASE("an exported decoder that reads by segments gives the model's logits") {
  Scratch folder;
  auto attention = busy_attention();
  attention.position = Choice(position_catalogue, "transformer_xl");
  for (auto options : {small_decoder_only(attention), ngram_then_attention(), ngram_and_attention()}) {
    options.segments.length = 3;
    options.segments.memory = 2;
    const auto model = make_model(model_choice("decoder_only", options));
    const auto path = folder / "decoder.pt";
    CHECK(export_single_stack(*model, path, toy_ids, {{"spec.json", "{}"}}).max_difference < 1e-5);
    auto file = torch::jit::load(path.string());
    const auto ids = random_ids({3, 11}, small_vocabulary, "ids");
    Batch batch;
    batch.target_BT = ids;
    const torch::NoGradGuard no_grad;
    CHECK(difference(file.get_method("full")({ids, torch::ones_like(ids, torch::kBool)}).toTensor(),
                     logits_of(*model, batch)) < 1e-5);
  }
}

TEST_CASE("an exported file has the windows that training chose, and keeps them") {
  Scratch folder;
  auto attention = small_attention();
  attention.gates.items.emplace_back(gate_catalogue, "adaptive_windows");
  auto& options = attention.gates.items.back().as<AdaptiveWindowsOptions>();
  options.set = {2, 3, 16};
  options.controller_grad = "ste";
  const auto model = make_model(model_choice("decoder_only", small_decoder_only(attention)));
  const auto ids = random_ids({3, 9}, small_vocabulary, "ids");
  Batch batch;
  batch.target_BT = ids;
  const torch::NoGradGuard no_grad;
  const auto undecided = logits_of(*model, batch);
  for (int64_t layer = 0; layer < 2; ++layer)
    model->named_buffers()["decoder.layers." + std::to_string(layer) + ".self_attention.gate0.window"].copy_(
        torch::tensor({3, 2, 16, 2}, torch::kLong));
  const auto decided = logits_of(*model, batch);
  CHECK(difference(decided, undecided) > 1e-3);
  const auto path = folder / "decoder.pt";
  export_single_stack(*model, path, toy_ids, {{"spec.json", "{}"}});
  auto file = torch::jit::load(path.string());
  CHECK(difference(file.get_method("full")({ids, torch::ones_like(ids, torch::kBool)}).toTensor(), decided) < 1e-5);
  bool kept = false;
  for (const auto& item : file.named_buffers(true))
    if (item.name.find("layers.1.self_attention.gate0.window") != std::string::npos) {
      CHECK(torch::equal(item.value, torch::tensor({3, 2, 16, 2}, torch::kLong)));
      kept = true;
    }
  CHECK(kept);
}

TEST_CASE("an exported encoder gives the model's logits where there is padding") {
  Scratch folder;
  const auto model = make_model(model_choice("encoder_only", small_encoder_only()));
  const auto path = folder / "encoder.pt";
  CHECK(export_single_stack(*model, path, toy_ids, {}).max_difference < 1e-5);
  auto file = torch::jit::load(path.string());
  CHECK_FALSE(file.find_method("generate_ids"));
  const auto ids = random_ids({2, 7}, small_vocabulary, "ids");
  const auto mask = mask_of({7, 4}, 7);
  Forward run;
  CHECK(difference(file.get_method("full")({ids, mask}).toTensor(), model->logits({{}, {}, ids, mask}, run)) < 1e-6);
}

TEST_CASE("a text that is too long for an exported decoder is an error that says so") {
  Scratch folder;
  const auto model = make_model(model_choice("decoder_only", small_decoder_only()));
  export_single_stack(*model, folder / "d.pt", toy_ids, {});
  auto file = torch::jit::load((folder / "d.pt").string());
  CHECK_THROWS_WITH(file.get_method("generate_ids")({random_ids({1, 4}, small_vocabulary, "p"), int64_t{14}}),
                    ContainsSubstring("ids: expected at most 16 tokens, got 17"));
}
