#include "src/measure/support.h"

#include <nlohmann/json.hpp>

#include "modules/attention/gate/windows.h"
#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/taps.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {}  // namespace

TEST_CASE("the reach of a head is how many weights stand out, over queries that see enough, by loops", "[paper-52]") {
  const auto task = make_task(
      R"({"type": "translation", "data": {"type": "grammar", "train": 300, "valid": 20, "test": 20}, "tokenizer": {"type": "bpe", "vocabulary": 300}})");
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.layers = options.decoder.layers = 1;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  options.encoder.attention.weigh.normalise.choose("sparsemax");
  const auto model = std::make_shared<EncoderDecoder>(options, task->context());
  fill(*model, 0.6);
  model->eval();
  SupportMeasureOptions wanted;
  wanted.limit = 6;
  wanted.least = 8;
  wanted.above = 0.02;
  const auto result = SupportMeasure(wanted).measure(*model, *task, 1);
  std::map<std::string, double> sums, queries;
  const torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < 6; ++i) {  // a text at a time: no padding
    const auto inputs = task->batch("valid", {i}, torch::kCPU).inputs;
    Seen seen(At::weights);
    Forward run;
    run.taps = {&seen};
    model->hidden(inputs, run);
    for (const auto& [site, weights] : seen.of)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t t = 0; t < weights.size(2); ++t) {
          const auto sees = site.stack == Stack::dec_self ? t + 1 : weights.size(3);
          if (sees < 8) continue;
          const auto name = to_string(HeadId{site.stack, site.layer, h});
          for (int64_t s = 0; s < weights.size(3); ++s) sums[name] += weights[0][h][t][s].item<double>() > 0.02;
          queries[name] += 1;
        }
  }
  double mean = 0;
  CHECK(result["heads"].size() == sums.size());
  for (const auto& [name, sum] : sums) {
    INFO(name);
    CHECK(result["heads"][name]["support"].get<double>() == Approx(sum / queries[name]));
    mean += sum / queries[name] / static_cast<double>(sums.size());
  }
  CHECK(result["support"].get<double>() == Approx(mean));
  wanted.least = 500;
  CHECK_THROWS_WITH(SupportMeasure(wanted).measure(*model, *task, 1),
                    ContainsSubstring("support: no query sees 500 keys"));
}
