#include "src/heads/score/wanda.h"

#include "modules/attention/gate/scalar.h"
#include "modules/attention/mix/low_rank.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

/// Keeps the heads' outputs of one pass.
struct HeadOutputs : Tap {
  std::map<Site, Tensor> z;
  bool wants(At at, Site) const override { return at == At::z; }
  Tensor see(At, Site site, Tensor value, const AttentionCall*) override { return z[site] = value; }
};

HeadScores wanda(Model& model, const Task& task) { return WandaScorer(WandaOptions()).score(model, task, 0); }

}  // namespace

TEST_CASE(
    "wanda is the size of a head's output weights by the norms of what comes in at them, without padding, by loops",
    "[heads]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 4});
  auto model = toy_model(task);
  fill(*model);
  model->keep(without(model->heads(),
                      parse_heads({"dec.cross.1.0", "enc.self.0.0", "enc.self.0.1", "enc.self.0.2", "enc.self.0.3"})));
  model->train();
  const auto scores = wanda(*model, task);
  CHECK(model->is_training());
  CHECK(scores.heads.size() == 19);
  model->eval();
  const torch::NoGradGuard no_grad;
  HeadOutputs seen;
  Forward run;
  run.taps = {&seen};
  model->hidden(task.batch("train", {0, 1, 2}, torch::kCPU).inputs, run);
  const std::vector<int64_t> lengths{5, 7, 4};
  for (const auto& [site, mixer] : model->mixers()) {
    const auto parameters = mixer->named_parameters();
    for (std::size_t h = 0; h < mixer->heads().size(); ++h) {
      const auto position = static_cast<int64_t>(h);
      double expected = 0;
      for (int64_t k = 0; k < 4; ++k) {
        double squares = 0, size = 0;
        for (int64_t b = 0; b < 3; ++b)
          for (int64_t t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t)
            squares += std::pow(seen.z.at(site)[b][position][t][k].item<double>(), 2);
        for (int64_t d = 0; d < 16; ++d) size += std::abs(parameters["mix.weight"][d][position * 4 + k].item<double>());
        expected += std::sqrt(squares) * size;
      }
      CHECK(scores.heads.at({site.stack, site.layer, mixer->heads()[h]}) == Approx(expected));
    }
  }
}

TEST_CASE("wanda sees what enters the output's matrix: after gates; and the matrix as it is with what low rank adds",
          "[heads]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 4});
  DecoderOnlyOptions options;
  options.d_model = 16;
  options.dropout = 0;
  options.decoder.layers = 1;
  options.decoder.attention.heads = 4;
  const auto plain = std::make_shared<DecoderOnly>(options, task.context());
  options.decoder.attention.gates.items = {Choice(gate_catalogue, "scalar")};
  options.decoder.attention.gates.items[0].as<ScalarGateOptions>().initial = -3;
  const auto gated = std::make_shared<DecoderOnly>(options, task.context());
  options.decoder.attention.gates.items.clear();
  options.decoder.attention.mix.choose("low_rank");
  options.decoder.attention.mix.as<LowRankMixOptions>().scale = 2;
  const auto added = std::make_shared<DecoderOnly>(options, task.context());
  for (const auto& model : {plain, gated, added}) initialise(*model, 5);
  const auto before = wanda(*plain, task);
  for (const auto& [head, score] : wanda(*gated, task).heads) CHECK(score == Approx(3 * before.heads.at(head)));
  {
    const torch::NoGradGuard no_grad;
    const auto parameters = added->mixers()[0].second->named_parameters();
    for (const auto* name : {"mix.up", "mix.down"}) parameters[name].normal_(0, 1, named_generator(2, name));
    plain->mixers()[0].second->named_parameters()["mix.weight"].add_(
        torch::matmul(parameters["mix.up"], parameters["mix.down"]), 2);
  }
  const auto summed = wanda(*plain, task);
  for (const auto& [head, score] : wanda(*added, task).heads) {
    CHECK(score == Approx(summed.heads.at(head)));
    CHECK(std::abs(score / before.heads.at(head) - 1) > 0.01);
  }
}

TEST_CASE("wanda of a routed attention is refused with its place", "[heads]") {
  const ToyTask task({5});
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.attention.project.choose("experts");
  options.encoder.attention.mix.choose("experts");
  options.encoder.attention.gates.items = {Choice(gate_catalogue, "route_experts")};
  const auto model = std::make_shared<EncoderDecoder>(options, task.context());
  CHECK_THROWS_WITH(wanda(*model, task), ContainsSubstring("wanda: enc.self.0 routes tokens to heads"));
}

}  // namespace headlab
