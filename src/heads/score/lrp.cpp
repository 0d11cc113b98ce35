#include "src/heads/score/lrp.h"

#include <c10/util/Type.h>

#include <algorithm>
#include <typeinfo>

#include "modules/attention/attention.h"
#include "modules/base/error.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Lets relevance begin at the embeddings, keeps the heads' outputs, and notes when the pass came by each place.
struct Passage : Tap {
  struct Place {
    uint64_t order;
    At at;
    Site site;
  };
  std::map<Site, Tensor> z;
  std::vector<Place> places;

  bool wants(At at, Site) const override {
    return at == At::x || at == At::z || at == At::y || at == At::residual_in || at == At::residual_mid ||
           at == At::residual_out;
  }
  Tensor see(At at, Site site, Tensor value, const AttentionCall*) override {
    if (at == At::residual_in && site.layer == 0) value = value.detach().requires_grad_();
    if (at == At::z) z[site] = value;
    if (value.grad_fn()) places.push_back({value.grad_fn()->sequence_nr(), at, site});
    return value;
  }
};

std::string listed(const Choices& choices) {
  std::string text;
  for (const auto& choice : choices.items) text += (text.empty() ? "" : ", ") + choice.type();
  return text.empty() ? "none" : text;
}

/// The entries that may have run before the pass came by `place`.
std::string entries_before(const Model& model, const Passage::Place& place) {
  const auto layer =
      (place.site.stack == Stack::enc_self ? "encoder.layers." : "decoder.layers.") + std::to_string(place.site.layer);
  if (place.at == At::z || place.at == At::y)
    for (const auto& [site, mixer] : model.mixers()) {
      if (site != place.site) continue;
      const auto* attention = dynamic_cast<const Attention*>(mixer);
      if (!attention) return to_string(site) + " (" + c10::demangle(typeid(*mixer).name()) + ")";
      const auto& o = attention->options();
      return to_string(site) + (place.at == At::z
                                    ? " (project " + o.project.type() + ", then " + listed(o.then) + ", weigh " +
                                          o.weigh.score.type() + " and " + o.weigh.normalise.type() + ")"
                                    : " (gates " + listed(o.gates) + ", mix " + o.mix.type() + ")");
    }
  if (place.at == At::residual_out)
    for (const auto& item : model.named_modules("", /*include_self=*/false))
      if (item.key() == layer + ".feed_forward") {
        const auto& module = *item.value();
        return layer + " (feed_forward " + c10::demangle(typeid(module).name()) + ", its norm and residual)";
      }
  return place.at == At::x ? to_string(place.site) + " (its norm)"
                           : layer + " (the residual sum and norm of an attention)";
}

void refuse_uncovered(const Model& model, const Tensor& logits, const Passage& seen) {
  const auto without_rule = relevance::uncovered(logits);
  if (without_rule.empty()) return;
  const auto& first = without_rule.back();
  std::string where = "the output, or the norm before it";
  for (const auto& place : seen.places)
    if (place.order >= first.order) {
      where = entries_before(model, place);
      break;
    }
  throw UsageError("lrp: expected operations with a rule of relevance, got " + first.operation + " in " + where +
                   "; choose another scorer, or give the entry a rule (modules/tensor/relevance.h)");
}

/// Relevances are measured in the parameters' type, whatever products take.
class FullProducts {
 public:
  explicit FullProducts(Model& model) : model_(model), before_(model.multiplies_in()) {
    model_.multiply_in(std::nullopt);
  }
  ~FullProducts() { model_.multiply_in(before_); }
  FullProducts(const FullProducts&) = delete;
  FullProducts& operator=(const FullProducts&) = delete;

 private:
  Model& model_;
  std::optional<torch::Dtype> before_;
};

/// The rows of a batch's questions, by example: at most `most` of each, spread evenly (0: all).
std::vector<std::vector<int64_t>> rows_by_example(const TokenBatch& batch, int64_t questions_each, int64_t N,
                                                  int64_t most) {
  const auto rows = batch.rows_N.defined() ? batch.rows_N.to(torch::kCPU) : torch::arange(N, torch::kLong);
  std::vector<std::vector<int64_t>> all(batch.examples.size()), chosen(batch.examples.size());
  for (int64_t i = 0; i < N; ++i) all[static_cast<std::size_t>(rows[i].item<int64_t>() / questions_each)].push_back(i);
  for (std::size_t b = 0; b < all.size(); ++b) {
    const auto n = static_cast<int64_t>(all[b].size()), count = most > 0 ? std::min(most, n) : n;
    for (int64_t i = 0; i < count; ++i)
      chosen[b].push_back(all[b][static_cast<std::size_t>((2 * i + 1) * n / (2 * count))]);
  }
  return chosen;
}

}  // namespace

void RelevanceScorerOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("logit", logit, "whose relevance: the class that the model predicts, or the right one")
      .one_of({"predicted", "right"});
  fields.add("questions", questions, "of each example, spread evenly").at_least(0).means("0: all");
  fields.add("alpha", alpha, "the part of positive contributions where there are negative ones too")
      .at_least(0)
      .at_most(1);
  fields.add("normalise", normalise, "divide by the sum over the heads of an attention, or not")
      .one_of({"layer", "none"});
}

HeadScores RelevanceScorer::score(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "lrp", "outputs");
  const Mode evaluating(model, false);
  const FullProducts full(model);
  const torch::AutoGradMode graph(true);
  std::map<Site, Tensor> sum_H;
  int64_t asked = 0;
  for (const auto& examples : options_.batches(task)) {
    const auto batch = task.batch(options_.split, examples, model.device());
    const relevance::Guard guard(options_.alpha);
    Passage seen;
    Forward run;
    run.taps = {&seen};
    const auto logits_NC = target_logits(model, batch, run);
    refuse_uncovered(model, logits_NC, seen);
    std::vector<Tensor> outputs;
    for (const auto& [site, z_BHTK] : seen.z) outputs.push_back(z_BHTK);
    if (outputs.empty()) break;  // no head is left
    const auto answer_N = options_.logit == "right" ? batch.targets_N : logits_NC.argmax(-1);
    // Rows count tokens, but for an output that puts one question (or two) to a text.
    const auto N = logits_NC.size(0), B = static_cast<int64_t>(examples.size());
    int64_t questions_each = N / B;
    if (batch.rows_N.defined()) {
      const torch::NoGradGuard no_graph;
      Forward plain;
      questions_each = model.logits(batch.inputs, plain).dim() == 2 ? 1 : batch.inputs.target_BT.size(1);
    }
    const auto rows = rows_by_example(batch, questions_each, N, options_.questions);
    std::size_t most = 0;
    for (const auto& of_example : rows) most = std::max(most, of_example.size());
    for (std::size_t i = 0; i < most; ++i) {  // examples don't meet: one question of each at a time
      std::vector<int64_t> now;
      for (const auto& of_example : rows)
        if (i < of_example.size()) now.push_back(of_example[i]);
      const auto rows_n = torch::tensor(now, torch::kLong).to(logits_NC.device());
      auto R_NC = torch::zeros_like(logits_NC);
      R_NC.index_put_({rows_n, answer_N.index_select(0, rows_n)}, 1);
      const auto reached = torch::autograd::grad({logits_NC}, outputs, {R_NC}, /*retain_graph=*/true,
                                                 /*create_graph=*/false, /*allow_unused=*/true);
      std::size_t place = 0;
      for (const auto& [site, z_BHTK] : seen.z) {
        const auto& R_BHTK = reached[place++];
        auto r_BH = (R_BHTK.defined() ? R_BHTK : torch::zeros_like(z_BHTK)).to(torch::kFloat64).sum({2, 3});
        if (options_.normalise == "layer") r_BH = r_BH / r_BH.sum(1, /*keepdim=*/true).clamp_min(1e-300);
        const auto more = r_BH.sum(0);
        sum_H[site] = sum_H.count(site) ? sum_H[site] + more : more;
      }
      asked += static_cast<int64_t>(now.size());
    }
  }
  HeadScores scores;
  scores.method = "lrp";
  for (const auto& [site, mixer] : model.mixers()) {
    const auto& heads = mixer->heads();
    for (std::size_t i = 0; i < heads.size(); ++i)
      scores.heads[{site.stack, site.layer, heads[i]}] =
          asked > 0 ? sum_H.at(site)[static_cast<int64_t>(i)].item<double>() / static_cast<double>(asked) : 0;
  }
  return scores;
}

}  // namespace headlab
