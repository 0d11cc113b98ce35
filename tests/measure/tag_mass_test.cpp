#include "src/measure/tag_mass.h"

#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "src/task/tagging.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/taps.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

std::shared_ptr<Task> tags_of_grammar() {
  return make_task(
      R"({"type": "tagging", "data": {"type": "grammar", "train": 300, "valid": 20, "test": 20}, "tokenizer": {"type": "bpe", "vocabulary": 200}})");
}

std::shared_ptr<Model> tagger(const Task& task) {
  EncoderOnlyOptions options;
  options.d_model = 16;
  options.encoder.layers = 2;
  options.encoder.attention.heads = 4;
  options.output.choose("tags");
  const auto model = models().make(model_choice("encoder_only", options), task.context());
  fill(*model, 0.6);
  model->eval();
  return model;
}

}  // namespace

TEST_CASE("the mass on tags and offsets is what loops over texts give", "[paper-52]") {
  const auto task = tags_of_grammar();
  const auto& tagging = dynamic_cast<const Tagging&>(*task);
  const auto model = tagger(*task);
  TagMassOptions wanted;
  wanted.limit = 7;
  const auto result = TagMassMeasure(wanted).measure(*model, *task, 1);
  std::map<std::string, std::map<std::string, double>> mass;
  std::map<std::string, std::map<int64_t, double>> offsets;
  std::map<std::string, double> share;
  double queries = 0;
  const torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < 7; ++i) {  // a text at a time: no padding
    const auto batch = tagging.collect("valid", {i}, torch::kCPU);
    std::map<int64_t, std::string> tag_at;
    for (int64_t n = 0; n < batch.tokens; ++n)
      tag_at[batch.rows_N[n].item<int64_t>()] = tagging.labels().name(batch.targets_N[n].item<int64_t>());
    for (const auto& [at, tag] : tag_at) share[tag] += 1;
    Seen seen(At::weights);
    Forward run;
    run.taps = {&seen};
    model->hidden(batch.inputs, run);
    const auto T = batch.inputs.target_BT.size(1);
    queries += static_cast<double>(T);
    for (const auto& [site, weights] : seen.of)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t t = 0; t < T; ++t)
          for (int64_t s = 0; s < T; ++s) {
            const auto name = to_string(HeadId{site.stack, site.layer, h});
            const auto weight = weights[0][h][t][s].item<double>();
            offsets[name][s - t] += weight;
            if (tag_at.count(s)) mass[name][tag_at[s]] += weight;
          }
  }
  CHECK(result["queries"].get<double>() == queries);
  REQUIRE(result["heads"].size() == 8);
  for (const auto& [name, of_tags] : mass) {
    INFO(name);
    for (const auto& [tag, sum] : of_tags) {
      CHECK(result["heads"][name]["mass"][tag].get<double>() == Approx(sum / queries));
      CHECK(result["heads"][name]["lift"][tag].get<double>() == Approx(sum / share[tag]));
    }
    double largest = 0;
    for (const auto& [offset, sum] : offsets[name]) largest = std::max(largest, sum / queries);
    CHECK(result["heads"][name]["offset_mass"].get<double>() == Approx(largest));
    CHECK(offsets[name][result["heads"][name]["offset"].get<int64_t>()] / queries == Approx(largest));
  }
  for (const auto& [tag, times] : share) CHECK(result["share"][tag].get<double>() == Approx(times / queries));
}

TEST_CASE("tags are asked of the task that knows them", "[paper-52]") {
  const auto task = make_task(
      R"({"type": "translation", "data": {"type": "grammar", "train": 60, "valid": 20, "test": 20}, "tokenizer": {"type": "bpe", "vocabulary": 200}})");
  EncoderDecoderOptions options;
  options.d_model = 16;
  const auto model = std::make_shared<EncoderDecoder>(options, task->context());
  CHECK_THROWS_AS(TagMassMeasure(TagMassOptions()).measure(*model, *task, 1), UsageError);
}
