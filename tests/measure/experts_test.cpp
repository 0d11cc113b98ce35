#include "src/measure/experts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/attention/gate/route_experts.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

namespace headlab {
namespace {

const char* by_symbol =
    R"({"type": "generated", "exercise": {"type": "offsets", "vocabulary": 8, "length": {"min": 10, "max": 10},
    "offsets": [1, 2], "rule": "symbol"}, "train": 50, "valid": 40, "test": 5})";

/// One layer of four experts, of which a token gets `k`, over embeddings alone.
std::shared_ptr<DecoderOnly> model_for(const Task& task, int64_t k, int64_t shared = 0) {
  auto options = small_decoder_only();
  options.norm.choose("none");
  options.embedding.position.choose("none");
  options.embedding.scale = false;
  options.embedding.max_length = 64;
  auto& attention = options.decoder.attention;
  attention.project.choose("experts");
  attention.mix.choose("experts");
  attention.gates.items.emplace_back(gate_catalogue, "route_experts");
  attention.gates.items.back().as<RouteExpertsOptions>().k = k;
  attention.gates.items.back().as<RouteExpertsOptions>().shared = shared;
  options.decoder.layers = 1;
  auto model = std::make_shared<DecoderOnly>(options, task.context());
  fill(*model, 0.4);
  model->eval();
  return model;
}

nlohmann::ordered_json measured(Model& model, const Task& task, int64_t modulo = 0) {
  ExpertsOptions options;
  options.modulo = modulo;
  return ExpertsMeasure(options).measure(model, task, 1);
}

}  // namespace

TEST_CASE("an expert for each class of token has all the information of the class; experts by chance have none",
          "[measure][paper-07]") {
  const torch::NoGradGuard no_grad;
  const auto task = make_task(by_symbol);
  const auto model = model_for(*task, 1);
  // Embeddings say the class, the id modulo 4, and the router reads it: class c picks expert 3 - c.
  auto table = model->named_parameters()["tokens.weight"],
       router = model->named_parameters()["decoder.layers.0.self_attention.gate0.weight"];
  table.zero_();
  router.zero_();
  for (int64_t id = 0; id < table.size(0); ++id) table[id][id % 4] = 1;
  for (int64_t c = 0; c < 4; ++c) router[3 - c][c] = 5;
  const auto found = measured(*model, *task, 4);
  const auto& one = found["attentions"]["dec.self.0"];
  std::map<int64_t, double> of_class;
  double tokens = 0, entropy = 0;
  for (int64_t i = 0; i < 40; ++i)
    for (const auto id : numbers_of(task->batch("valid", {i}, torch::kCPU).inputs.target_BT)) {
      ++of_class[id % 4];
      ++tokens;
    }
  for (const auto& [c, count] : of_class) {
    CHECK(one["load"][std::to_string(3 - c)].get<double>() == Catch::Detail::Approx(count / tokens));
    entropy -= count / tokens * std::log2(count / tokens);
  }
  CHECK(found["information"].get<double>() == Catch::Detail::Approx(entropy));
  CHECK(found["least_load"].get<double>() == one["least_load"].get<double>());
  // With all experts for every token the pick says nothing.
  const auto all = model_for(*task, 4);
  CHECK(std::abs(measured(*all, *task)["information"].get<double>()) < 1e-12);
  CHECK(measured(*all, *task)["least_load"].get<double>() == Catch::Detail::Approx(0.25));
  // A shared expert is among every token's.
  const auto shared = model_for(*task, 2, 1);
  CHECK(measured(*shared, *task)["attentions"]["dec.self.0"]["load"]["0"].get<double>() == Catch::Detail::Approx(0.5));
}

TEST_CASE("experts are measured where there are some", "[measure][paper-07]") {
  const auto task = make_task(by_symbol);
  auto options = small_decoder_only();
  options.embedding.max_length = 64;
  DecoderOnly model(options, task->context());
  CHECK_THROWS_WITH(measured(model, *task),
                    ContainsSubstring("expected a model whose attention has the gate route_experts"));
}

}  // namespace headlab
