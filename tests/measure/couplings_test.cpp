#include "src/measure/couplings.h"

#include <nlohmann/json.hpp>

#include "modules/attention/mix/capsules.h"
#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

std::shared_ptr<Task> pairs_of_text() {
  return make_task(
      R"({"type": "translation", "data": {"type": "grammar", "train": 300, "valid": 20, "test": 20}, "tokenizer": {"type": "bpe", "vocabulary": 300}})");
}

std::shared_ptr<EncoderDecoder> routed_model(const Task& task, int64_t iterations) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.layers = options.decoder.layers = 1;
  for (auto* attention : {&options.encoder.attention, &options.decoder.attention, &options.decoder.cross_attention})
    attention->heads = 4;
  options.encoder.attention.mix.choose("dynamic_capsules");
  options.encoder.attention.mix.as<DynamicCapsulesOptions>().capsules = 3;
  options.encoder.attention.mix.as<DynamicCapsulesOptions>().iterations = iterations;
  options.encoder.attention.gates.items.emplace_back(gate_catalogue, "scalar");
  options.decoder.cross_attention.mix.choose("em_agreement");
  const auto model = std::make_shared<EncoderDecoder>(options, task.context());
  fill(*model, 0.6);
  model->eval();
  return model;
}

CouplingsMeasureOptions first_six() {
  CouplingsMeasureOptions options;
  options.limit = 6;
  return options;
}

}  // namespace

TEST_CASE("the entropy of couplings is a mean over tokens and input capsules, after the gates, by loops",
          "[paper-04][paper-45]") {
  const auto task = pairs_of_text();
  const auto model = routed_model(*task, 3);
  const auto result = CouplingsMeasure(first_six()).measure(*model, *task, 1);
  REQUIRE(result["attentions"].size() == 2);
  double sum = 0, count = 0;
  const torch::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  std::string gate, votes;
  for (const auto& name : parameters.keys()) {
    if (name.find("gate0.change") != std::string::npos) gate = name;
    if (name.find("mix.votes") != std::string::npos && parameters[name].size(-1) == 12)
      votes = name;  // 3 capsules of width 4
  }
  for (int64_t n = 0; n < 6; ++n) {  // a text at a time: no padding
    LambdaTap tap([](At at, Site site) { return at == At::z && site.stack == Stack::enc_self; },
                  [&](At, Site, Tensor z) {
                    const auto gated = z * (1 + parameters[gate]).view({1, 4, 1, 1});
                    const auto of_heads =
                        torch::matmul(gated, parameters[votes]).transpose(1, 2).unflatten(-1, at::IntArrayRef{3, 4});
                    const auto c = DynamicRouting(3, DynamicRouting::Take::squash).route(of_heads).couplings_BTIJ[0];
                    for (int64_t t = 0; t < c.size(0); ++t)
                      for (int64_t i = 0; i < 4; ++i, ++count)
                        for (int64_t j = 0; j < 3; ++j)
                          sum -= c[t][i][j].item<double>() * std::log(c[t][i][j].item<double>());
                    return z;
                  });
    Forward run;
    run.taps = {&tap};
    model->hidden(task->batch("valid", {n}, torch::kCPU).inputs, run);
  }
  const auto& encoder = result["attentions"]["enc.self.0"];
  CHECK(encoder["entropy"].get<double>() == Approx(sum / count));
  CHECK(encoder["of_uniform"].get<double>() == Approx(sum / count / std::log(3.0)));
  CHECK(encoder["of_uniform"].get<double>() < 0.999);
  const auto& cross = result["attentions"]["dec.cross.0"];
  CHECK(result["entropy"].get<double>() ==
        Approx((encoder["entropy"].get<double>() + cross["entropy"].get<double>()) / 2));
  CHECK(result["of_uniform"].get<double>() ==
        Approx((encoder["of_uniform"].get<double>() + cross["of_uniform"].get<double>()) / 2));
}

TEST_CASE("after one round couplings are uniform, and a model without a routing has none", "[paper-04][paper-45]") {
  const auto task = pairs_of_text();
  const auto result = CouplingsMeasure(first_six()).measure(*routed_model(*task, 1), *task, 1);
  CHECK(result["attentions"]["enc.self.0"]["of_uniform"].get<double>() == Approx(1).margin(1e-6));
  EncoderDecoderOptions options;
  options.d_model = 16;
  const auto plain = std::make_shared<EncoderDecoder>(options, task->context());
  CHECK_THROWS_WITH(CouplingsMeasure(first_six()).measure(*plain, *task, 1),
                    ContainsSubstring("expected a model with a mix that routes"));
}
