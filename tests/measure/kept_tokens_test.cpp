#include "src/measure/kept_tokens.h"

#include <nlohmann/json.hpp>

#include "modules/attention/gate/heads_by_length.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/base/error.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/tensor/torch.h"
#include "src/measure/heads_by_length.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

namespace headlab {
namespace {

const char* pairs =
    R"({"type": "generated", "exercise": {"type": "paired_recall", "keys": 6, "values": 4, "queries": 4, "pairs": {"min": 4, "max": 4}},
    "train": 30, "valid": 10, "test": 20})";
const char* texts =
    R"({"type": "generated", "exercise": {"type": "sentiment", "length": {"min": 3, "max": 9}}, "train": 30, "valid": 10, "test": 60})";

std::shared_ptr<DecoderOnly> sparse_model(const Task& task, int64_t active, int64_t shared) {
  auto options = small_decoder_only();
  options.decoder.layers = 1;
  options.norm.choose("none");
  options.embedding.position.choose("none");
  options.embedding.scale = false;
  options.output.choose("tags");
  options.decoder.attention.gates.items.emplace_back(gate_catalogue, "native_sparse");
  auto& gate = options.decoder.attention.gates.items.back().as<NativeSparseOptions>();
  gate.active = active;
  gate.shared = shared;
  auto model = std::make_shared<DecoderOnly>(options, task.context());
  fill(*model);
  model->eval();
  return model;
}

nlohmann::ordered_json kept(Model& model, const Task& task) { return KeptTokensMeasure({}).measure(model, task, 1); }

}  // namespace

TEST_CASE(
    "kept tokens: shares of cache, access and pairs by hand, where heads keep equally many and where one keeps all",
    "[measure][paper-28]") {
  const torch::NoGradGuard no_grad;
  const auto task = make_task(pairs);
  const auto model = sparse_model(*task, 1, 0);
  auto parameters = model->named_parameters();
  auto table = parameters["tokens.weight"], router = parameters["decoder.layers.0.self_attention.gate0.weight"];
  table.zero_();
  router.zero_();
  // Pairs pick head 0, keys that are asked head 1: 4 tokens of 8 each, none for the others.
  for (int64_t id = 0; id < table.size(0); ++id) table[id][task->token(id).find('=') == std::string::npos] = 1;
  router[0][0] = router[1][1] = 5;
  auto found = kept(*model, *task);
  CHECK(found["cache"].get<double>() == Approx(8 / (4 * 8.0)));
  CHECK(found["access"].get<double>() == Approx(4 / (4 * 8.0)));
  CHECK(found["pairs"].get<double>() == Approx(2 * 4 * 5 / (4 * 8 * 9.0)));
  CHECK(found["cv2"].get<double>() == Approx((2 * 4 + 2 * 4) / 4 / 4.0));  // loads 4 4 0 0, mean 2
  CHECK(found["attentions"]["dec.self.0"]["load"]["1"].get<double>() == Approx(0.5));
  const auto shared = sparse_model(*task, 1, 3);  // head 3 is left to pick: all heads keep all
  found = kept(*shared, *task);
  for (const auto* one : {"cache", "access", "pairs"}) CHECK(found[one].get<double>() == Approx(1));
  CHECK(found["cv2"].get<double>() == 0);
  auto plain = small_decoder_only();
  plain.output.choose("tags");
  DecoderOnly without(plain, task->context());
  CHECK_THROWS_AS(kept(without, *task), UsageError);
}

TEST_CASE("heads by length: cost is sum k L^2 over H sum L^2, and texts of each length are counted and asked",
          "[measure][paper-33]") {
  const torch::NoGradGuard no_grad;
  const auto task = make_task(texts);
  const auto measured = [&](bool separate) {
    auto options = small_encoder_only();
    options.output.choose("classes");
    if (separate) {
      options.encoder.mixer.choose("heads_by_length");
      options.encoder.mixer.as<SeparateHeadsOptions>().heads = {1, 2, 4};
      options.encoder.mixer.as<SeparateHeadsOptions>().thresholds = {4, 6};
    } else {
      options.encoder.attention.gates.items.emplace_back(gate_catalogue, "heads_by_length");
      options.encoder.attention.gates.items.back().as<HeadsByLengthOptions>().heads = {1, 2, 4};
      options.encoder.attention.gates.items.back().as<HeadsByLengthOptions>().thresholds = {4, 6};
    }
    const auto model = std::make_shared<EncoderOnly>(options, task->context());
    fill(*model);
    auto result = HeadsByLengthMeasure({}).measure(*model, *task, 1);
    const auto all = task->evaluate(*model, {}, {}).metrics;
    double right = 0;
    for (const auto& [name, one] : result["lengths"].items())
      right += one["accuracy"].get<double>() * one["texts"].get<double>();
    CHECK(right / 60 == Approx(all.at("accuracy")));
    return result;
  };
  const auto found = measured(false);
  double needed = 0, full = 0, shortest = 0;
  for (const auto length : task->lengths("test").second) {
    const auto heads = length <= 4 ? 1 : length <= 6 ? 2 : 4;
    needed += static_cast<double>(heads * length * length);
    full += static_cast<double>(4 * length * length);
    shortest += length <= 4;
  }
  CHECK(found["cost"].get<double>() == Approx(needed / full));
  CHECK(found["lengths"]["4"]["texts"].get<double>() == shortest);
  CHECK(found["lengths"]["longer"]["heads"].get<int64_t>() == 4);
  CHECK(measured(true)["cost"].get<double>() == Approx(1));  // fewer heads, as wide together
  EncoderOnly plain(small_encoder_only(), task->context());
  CHECK_THROWS_AS(HeadsByLengthMeasure({}).measure(plain, *task, 1), UsageError);
}

}  // namespace headlab
