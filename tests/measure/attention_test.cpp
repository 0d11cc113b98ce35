#include "src/measure/attention.h"

#include <nlohmann/json.hpp>

#include "modules/attention/project/persistent.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/heads/head_set.h"
#include "src/task/translation.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/taps.h"
#include "tests/support/tasks.h"

namespace headlab {
namespace {

/// A decoder of its own for base64: the bytes of a text.
std::vector<int> bytes_in(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<int> bytes;
  int bits = 0, held = 0;
  for (const char letter : text) {
    if (letter == '=') break;
    held = held << 6 | static_cast<int>(letters.find(letter));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(held >> bits & 255);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("attention of the report is the model's weights on short texts, with the tokens that stand there") {
  const auto task = make_task_as<Translation>(
      R"({"type": "translation", "data": {"type": "grammar", "train": 300, "valid": 40, "test": 20},
      "tokenizer": {"type": "bpe", "vocabulary": 300}})");
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.layers = options.decoder.layers = 2;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  options.encoder.attention.then.items.emplace_back(adapter_catalogue, "persistent");  // keys that are no tokens
  auto model = std::make_shared<EncoderDecoder>(options, task->context());
  fill(*model, 0.4);
  model->eval();
  model->keep({{Stack::enc_self, {{0, 2}, {1}}},
               {Stack::dec_self, {{0, 1, 2, 3}, {}}},
               {Stack::dec_cross, {{3}, {0, 1, 2, 3}}}});
  AttentionMeasureOptions wanted;
  wanted.texts = 2;
  wanted.longest = 20;
  const auto result = AttentionMeasure(wanted).measure(*model, *task, 1);
  REQUIRE(result["texts"].size() == 2);
  CHECK(result["heads"].size() == 3 + 4 + 5);
  const auto [sources, targets] = task->lengths("valid");
  std::size_t found = 0;
  for (std::size_t i = 0; found < 2; ++i) {
    if (sources[i] > 20 || targets[i] > 20) continue;
    const auto& text = result["texts"][found];
    REQUIRE(static_cast<int64_t>(text["source"].size()) == sources[i]);
    REQUIRE(static_cast<int64_t>(text["target"].size()) == targets[i]);
    CHECK(text["source"].back() == "</s>");
    CHECK(text["target"].front() == "<s>");
    const auto inputs = task->batch("valid", {static_cast<int64_t>(i)}, torch::kCPU).inputs;
    CHECK(text["target"][1] == task->tokenizers().target.decode({inputs.target_BT[0][1].item<int64_t>()}));
    CHECK(text["source"][0] == task->tokenizers().source.decode({inputs.source_BS[0][0].item<int64_t>()}));
    const torch::NoGradGuard no_grad;
    Seen seen(At::weights);
    Forward run;
    run.taps = {&seen};
    model->hidden(inputs, run);
    for (const auto& [site, mixer] : model->mixers())
      for (std::size_t h = 0; h < mixer->heads().size(); ++h) {
        const auto bytes =
            bytes_in(result["heads"][to_string(HeadId{site.stack, site.layer, mixer->heads()[h]})]["attention"][found]
                         .get<std::string>());
        auto weights = seen.of.at(site)[0][static_cast<int64_t>(h)];
        const auto keys = site.stack == Stack::dec_self ? targets[i] : sources[i];
        weights = weights.narrow(1, weights.size(1) - keys, keys);
        REQUIRE(static_cast<int64_t>(bytes.size()) == weights.numel());
        for (int64_t t = 0; t < weights.size(0); ++t)
          for (int64_t s = 0; s < keys; ++s)
            CHECK(std::abs(bytes[static_cast<std::size_t>(t * keys + s)] / 255.0 - weights[t][s].item<double>()) <=
                  0.5 / 255 + 1e-6);
      }
    ++found;
  }
  wanted.longest = 1;
  CHECK_THROWS_WITH(AttentionMeasure(wanted).measure(*model, *task, 1),
                    ContainsSubstring("attention: no text of the valid data has at most 1 tokens"));
}

}  // namespace headlab
