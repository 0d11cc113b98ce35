#include "src/heads/score/direction.h"

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/heads/scale.h"
#include "src/task/generated.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

namespace headlab {
namespace {

const char* refusing =
    R"({"type": "generated", "exercise": {"type": "refuse", "vocabulary": 8, "refused": 3}, "train": 50, "valid": 30, "test": 5})";

std::shared_ptr<DecoderOnly> model_for(const Task& task) {
  auto options = small_decoder_only();
  options.decoder.layers = 2;
  options.embedding.max_length = 64;
  auto model = std::make_shared<DecoderOnly>(options, task.context());
  fill(*model, 0.4);
  model->eval();
  return model;
}

DirectionScorer scorer(std::optional<int64_t> layer = std::nullopt, const std::string& answer = "REFUSE") {
  DirectionOptions options;
  options.answer = answer;
  options.layer = layer;
  return DirectionScorer(options);
}

struct Taken : Tap {
  std::map<Site, Tensor> o, residual;
  bool wants(At at, Site) const override { return at == At::o || at == At::residual_out; }
  Tensor see(At at, Site site, Tensor value, const AttentionCall*) override {
    return (at == At::o ? o : residual)[site] = value;
  }
};

}  // namespace

TEST_CASE("a head's direction score is the mean of <o_h, r> at the last token of prompts with the answer, by loops",
          "[heads][paper-17]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto task = make_task_as<GeneratedTask>(refusing);
  const auto model = model_for(*task);
  const auto refuse = task->encode("REFUSE").front(), question = task->encode("?").front();
  for (const int64_t layer : {0, 1}) {
    const auto scores = scorer(layer).score(*model, *task, 1);
    Tensor towards = torch::zeros({small_width}), away = torch::zeros({small_width});
    std::map<HeadId, std::vector<Tensor>> o;
    double with = 0, without = 0;
    for (int64_t i = 0; i < 30; ++i) {
      const auto batch = task->batch("valid", {i}, torch::kCPU);
      const auto ids = numbers_of(batch.inputs.target_BT);
      const auto last = std::find(ids.begin(), ids.end(), question) - ids.begin();
      Taken seen;
      Forward run;
      run.taps = {&seen};
      model->hidden(batch.inputs, run);
      const auto residual = seen.residual.at({Stack::dec_self, layer})[0][last];
      const bool is = batch.targets_N[0].item<int64_t>() == refuse;
      (is ? towards : away) += residual;
      (is ? with : without) += 1;
      if (!is) continue;
      for (const auto& [site, of_heads] : seen.o)
        for (int64_t h = 0; h < 4; ++h) o[{site.stack, site.layer, h}].push_back(of_heads[0][h][last]);
    }
    REQUIRE(with > 5);
    REQUIRE(without > 5);
    auto r = towards / with - away / without;
    r = r / r.norm();
    CHECK(scores.heads.size() == 8);
    for (const auto& [head, of] : o) {
      double sum = 0;
      for (const auto& one : of) sum += one.dot(r).item<double>();
      CHECK(scores.heads.at(head) == Catch::Detail::Approx(sum / with).margin(1e-12));
    }
  }
  CHECK((scorer().score(*model, *task, 1).heads == scorer(1).score(*model, *task, 1).heads));
}

TEST_CASE("a head that writes nothing has direction score 0", "[heads][paper-17]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto task = make_task_as<GeneratedTask>(refusing);
  const auto model = model_for(*task);
  {
    const torch::NoGradGuard no_grad;
    model->named_parameters()["decoder.layers.0.self_attention.mix.weight"]
        .narrow(1, 2, 2)
        .zero_();  // head 1 of four of width 2
  }
  const auto scores = scorer().score(*model, *task, 1);
  CHECK(scores.heads.at({Stack::dec_self, 0, 1}) == 0);
  CHECK(scores.heads.at({Stack::dec_self, 0, 0}) != 0);
}

TEST_CASE("directions towards no answer, an answer of two tokens or no layer are errors that say so",
          "[heads][paper-17]") {
  const auto task = make_task_as<GeneratedTask>(refusing);
  const auto model = model_for(*task);
  CHECK_THROWS_WITH(scorer({}, "s1 s2").score(*model, *task, 1), ContainsSubstring("expected one token, got 2"));
  CHECK_THROWS_WITH(scorer({}, "f1").score(*model, *task, 1), ContainsSubstring("got 0 and 30"));
  CHECK_THROWS_WITH(scorer(2).score(*model, *task, 1), ContainsSubstring("direction.layer: expected at most 1, got 2"));
  const auto pairs = make_task(R"({"type": "generated", "exercise": "copy", "train": 20, "valid": 5, "test": 5})");
  auto translator = std::make_shared<EncoderDecoder>(small_encoder_decoder(), pairs->context());
  CHECK_THROWS_WITH(scorer().score(*translator, *pairs, 1),
                    ContainsSubstring("expected a task of one text that is continued"));
}

}  // namespace headlab
