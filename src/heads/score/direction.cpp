#include "src/heads/score/direction.h"

#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// What a batch's passes leave at one token of each text.
struct AtToken : Tap {
  Tensor token_B;  // long: where it stands
  int64_t layer = 0;
  Tensor residual_BD;            // after that layer
  std::map<Site, Tensor> o_BHD;  // each head's share of its attention's output

  bool wants(At at, Site site) const override { return at == At::o || (at == At::residual_out && site.layer == layer); }
  Tensor see(At at, Site site, Tensor value, const AttentionCall*) override {
    const auto wide = value.to(torch::kFloat64);
    const auto D = value.size(-1);
    if (at == At::o)
      o_BHD[site] = wide.gather(2, token_B.view({-1, 1, 1, 1}).expand({-1, wide.size(1), 1, D})).squeeze(2);
    else
      residual_BD = wide.gather(1, token_B.view({-1, 1, 1}).expand({-1, 1, D})).squeeze(1);
    return value;
  }
};

}  // namespace

void DirectionOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("answer", answer, "the answer towards which the direction points").required();
  fields.add("layer", layer, "the layer after which the residual stream is read").at_least(0).means("absent: the last");
}

HeadScores DirectionScorer::score(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "direction", "outputs");
  const auto* text = dynamic_cast<const WritesText*>(&task);
  const auto mixers = model.mixers();
  if (!text || mixers.empty() || mixers.front().first.stack != Stack::dec_self)
    throw UsageError("direction: expected a task of one text that is continued, and a decoder_only model");
  const auto ids = text->encode(options_.answer);
  if (ids.size() != 1)
    throw UsageError("direction.answer: expected one token, got " + std::to_string(ids.size()) + " in " +
                     in_quotes(options_.answer));
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto last = mixers.back().first.layer;
  if (options_.layer.value_or(last) > last)
    throw UsageError("direction.layer: expected at most " + std::to_string(last) + ", got " +
                     std::to_string(*options_.layer));

  Tensor towards, away;         // sums of the residual stream, [D]
  std::map<Site, Tensor> o_HD;  // sums over prompts of that answer
  int64_t with = 0, without = 0;
  for (const auto& chosen : options_.batches(task)) {
    const auto batch = task.batch(options_.split, chosen, model.device());
    const auto B = static_cast<int64_t>(chosen.size()), T = batch.inputs.target_BT.size(1);
    const auto rows =
        (batch.rows_N.defined() ? batch.rows_N : torch::arange(batch.targets_N.size(0), batch.targets_N.options()))
            .to(torch::kCPU)
            .contiguous();
    const auto targets = batch.targets_N.to(torch::kCPU).contiguous();
    std::vector<int64_t> token(static_cast<std::size_t>(B), -1);
    std::vector<double> is(static_cast<std::size_t>(B));
    for (int64_t n = 0; n < rows.size(0); ++n) {
      const auto row = rows.data_ptr<int64_t>()[n];
      auto& at = token[static_cast<std::size_t>(row / T)];
      if (at >= 0) continue;
      at = row % T;
      is[static_cast<std::size_t>(row / T)] = targets.data_ptr<int64_t>()[n] == ids.front();
    }
    for (auto& at : token) at = std::max<int64_t>(at, 0);  // a text that asks nothing; no task has one
    AtToken seen;
    seen.token_B = torch::tensor(token, torch::kLong).to(model.device());
    seen.layer = options_.layer.value_or(last);
    Forward run;
    run.taps = {&seen};
    model.hidden(batch.inputs, run);
    const auto is_B = torch::tensor(is, torch::kFloat64).to(model.device());
    const auto add = [](Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum + more : more; };
    add(towards, (seen.residual_BD * is_B.unsqueeze(-1)).sum(0));
    add(away, (seen.residual_BD * (1 - is_B).unsqueeze(-1)).sum(0));
    for (const auto& [site, o] : seen.o_BHD) add(o_HD[site], (o * is_B.view({-1, 1, 1})).sum(0));
    const auto of_answer = static_cast<int64_t>(is_B.sum().item<double>());
    with += of_answer;
    without += B - of_answer;
  }
  if (with == 0 || without == 0)
    throw UsageError("direction.answer: expected some examples of the " + options_.split + " part to be answered by " +
                     in_quotes(options_.answer) + " and some not, got " + std::to_string(with) + " and " +
                     std::to_string(without));
  const auto difference = towards / static_cast<double>(with) - away / static_cast<double>(without);
  const auto r = difference / difference.norm().clamp_min(1e-300);
  HeadScores scores;
  scores.method = "direction";
  for (const auto& [site, mixer] : mixers) {
    if (mixer->heads().empty()) continue;
    if (!o_HD.count(site)) throw UsageError("direction: the output of " + to_string(site) + " is no sum over heads");
    const auto s_H = (torch::matmul(o_HD.at(site), r) / static_cast<double>(with)).to(torch::kCPU);
    for (std::size_t i = 0; i < mixer->heads().size(); ++i)
      scores.heads[{site.stack, site.layer, mixer->heads()[i]}] = s_H[static_cast<int64_t>(i)].item<double>();
  }
  return scores;
}

}  // namespace headlab
