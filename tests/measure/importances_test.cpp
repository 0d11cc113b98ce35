#include "src/measure/importances.h"

#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/attention/gate/dynamic_importance.h"
#include "modules/base/error.h"
#include "src/heads/score/dynamic_importance.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

using Catch::Detail::Approx;

/// Two layers a stack, of which all attentions weigh their heads, after a scale of each.
std::shared_ptr<EncoderDecoder> weighed(const ToyTask& task) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.layers = options.decoder.layers = 2;
  for (auto* attention : {&options.encoder.attention, &options.decoder.attention, &options.decoder.cross_attention}) {
    attention->heads = 4;
    for (const auto* gate : {"scalar", "dynamic_importance"}) attention->gates.items.emplace_back(gate_catalogue, gate);
  }
  auto model = std::make_shared<EncoderDecoder>(options, task.context());
  fill(*model, 0.4);
  return model;
}

}  // namespace

TEST_CASE("mean importances and their KL are those of the gates over real tokens, of the heads that are there",
          "[measure][paper-31]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const ToyTask task({5, 7, 4});
  const auto model = weighed(task);
  model->keep({{Stack::dec_cross, {{1, 2}, {}}}});
  ImportancesOptions options;
  const auto measured = ImportancesMeasure(options).measure(*model, task, 1);
  const auto scores = DynamicImportanceScorer(DynamicImportanceScorerOptions()).score(*model, task, 1);
  CHECK(measured["attentions"].size() == 5);
  CHECK(measured["heads"].size() == 18);
  CHECK(scores.heads.size() == 18);

  // By hand: one text after another, so that no padding is there at all.
  double all = 0;
  model->eval();
  for (const auto& [site, mixer] : model->mixers()) {
    if (mixer->heads().empty()) continue;
    const auto& gates = dynamic_cast<const Attention&>(*mixer).gate_list();
    const auto heads = mixer->heads().size();
    std::vector<double> importance(heads, 0), kl(heads, 0);
    for (int64_t text = 0; text < 3; ++text) {
      Tensor z, x;
      LambdaTap tap([site = site](At at, Site where) { return (at == At::z || at == At::x) && where == site; },
                    [&](At at, Site, Tensor value) { return (at == At::z ? z : x) = value; });
      Forward run;
      run.taps = {&tap};
      model->hidden(task.batch("valid", {text}, torch::kCPU).inputs, run);
      const auto scaled = gates[0]->weigh(z, {}, call_of(x, run));
      const auto a = dynamic_cast<const DynamicImportance&>(*gates[1]).importances(scaled, x);
      for (int64_t t = 0; t < a.size(2); ++t)
        for (std::size_t h = 0; h < heads; ++h) {
          const auto one = a[0][static_cast<int64_t>(h)][t].item<double>();
          importance[h] += one / 16;
          kl[h] += one * std::log(one * static_cast<double>(heads)) / 16;
        }
    }
    double sum = 0, of_kl = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      const HeadId head{site.stack, site.layer, mixer->heads()[h]};
      INFO(to_string(head));
      CHECK(measured["heads"][to_string(head)]["importance"].get<double>() == Approx(importance[h]));
      CHECK(measured["heads"][to_string(head)]["kl"].get<double>() == Approx(kl[h]));
      CHECK(scores.heads.at(head) == Approx(importance[h]));
      sum += importance[h];
      of_kl += kl[h];
    }
    CHECK(sum == Approx(1));
    CHECK(measured["attentions"][to_string(site)]["kl"].get<double>() == Approx(of_kl));
    all += of_kl / 5;
  }
  CHECK(measured["kl"].get<double>() == Approx(all));
}

TEST_CASE("importances are asked of models that have them, and scores of models that have them everywhere",
          "[measure][paper-31]") {
  const ToyTask task({5});
  CHECK_THROWS_WITH(ImportancesMeasure(ImportancesOptions()).measure(*toy_model(task), task, 1),
                    "importances: expected a model of which an attention has the gate dynamic_importance");
  CHECK_THROWS_WITH(DynamicImportanceScorer(DynamicImportanceScorerOptions()).score(*toy_model(task), task, 1),
                    "dynamic_importance: enc.self.0 has no gate \"dynamic_importance\" that could be asked");
}

}  // namespace headlab
