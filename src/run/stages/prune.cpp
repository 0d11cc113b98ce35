#include <chrono>

#include "modules/base/nearest.h"
#include "modules/mixer/attention_in.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/json_file.h"
#include "src/data/paths.h"
#include "src/run/stages/stages.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

std::string left_in(const HeadTable& table) {
  std::string text;
  for (const auto& [stack, layers] : table) {
    std::size_t count = 0;
    for (const auto& heads : layers) count += heads.size();
    text += (text.empty() ? "" : ", ") + stack_name(stack) + " " + std::to_string(count);
  }
  return text;
}

/// Of a forward pass over some validation examples, the fastest of three.
double seconds_of(Model& model, const Task& task) {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto inputs = task.batch("valid", first_batches(task, "valid", 32, 4096).front(), model.device()).inputs;
  double fastest = 0;
  for (int i = 0; i < 3; ++i) {
    Forward run;
    const auto before = std::chrono::steady_clock::now();
    model.hidden(inputs, run).sum().item();  // an item waits for the device
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    fastest = i == 0 ? seconds : std::min(fastest, seconds);
  }
  return fastest;
}

}  // namespace

void HeadChoiceOptions::describe_heads(Fields& fields, const std::string& type) {
  describe_common(fields, type);
  fields.add("heads", heads, "these heads, by name (enc.self.0.3)");
  fields.add("scores", scores, "the score stage whose scores select");
  fields.add("scores_file", scores_file, "a file of head scores that selects").file();
  fields.add("random", random, "select at random, by the seed");
  fields.add("select", select, "how many, and from where");
}

void PruneStageOptions::describe(Fields& fields) {
  describe_heads(fields, "prune");
  fields.add("closed_gates", closed_gates, "the heads whose gates are exactly 0 at evaluation");
}

void HeadChoiceOptions::rules(Problems& problems) const {
  const auto* prune = dynamic_cast<const PruneStageOptions*>(this);
  const int ways = !heads.empty() + !scores.empty() + !scores_file.empty() + random + (prune && prune->closed_gates);
  if (ways != 1)
    problems.add("heads", "expected exactly one way to choose heads (heads, scores, scores_file, random" +
                              std::string(prune ? ", closed_gates" : "") + "), got " + std::to_string(ways));
  const bool selects = !scores.empty() || !scores_file.empty() || random;
  if (selects && select.given() != 1)
    problems.add("select",
                 "expected exactly one of fraction, count and threshold, got " + std::to_string(select.given()));
  if (!selects && select.given() > 0)
    problems.add("select",
                 "goes with scores, scores_file or random: named heads and closed gates say themselves how many");
  if (random && select.threshold)
    problems.add("select.threshold", "random heads have no scores; use fraction or count");
  for (std::size_t i = 0; i < heads.size(); ++i) {
    try {
      parse_head(heads[i]);
    } catch (const UsageError& error) {
      problems.add("heads[" + std::to_string(i) + "]", error.what());
    }
  }
}

void HeadChoiceOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  if (!scores.empty() && !known.count(scores))
    problems.add(place + ".scores", "no earlier stage is called " + in_quotes(scores));
}

HeadSet HeadChoiceOptions::choose(RunContext& context, const HeadTable& there, uint64_t seed) const {
  if (!heads.empty()) {
    const auto chosen = parse_heads(heads);
    for (auto head : chosen) check_head(there, head);
    return chosen;
  }
  if (random) return random_heads(there, select, seed);
  if (!scores_file.empty()) {
    const auto file = resolve_data_path(scores_file, context.results().value("spec_folder", std::string(".")));
    return select_heads(there, HeadScores::from_json(read_ordered_json_file(file), file), select);
  }
  return select_heads(there, context.scores(scores), select);
}

nlohmann::ordered_json MaskStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "mask" : options_.name;
  auto model = context.model(options_.model);
  const auto there = model->heads();
  auto chosen = options_.choose(context, there, context.seed_of(stage));
  const auto already = context.masked(options_.model);
  chosen.insert(chosen.end(), already.begin(), already.end());
  chosen = sorted_set(std::move(chosen));
  context.keep_model(stage, model, context.model_options(options_.model));
  const auto before = heads_of(there).size();
  context.console().line("mask", std::to_string(chosen.size()) + " of " + std::to_string(before) + " heads");
  return {{"masked", names_of(chosen)}, {"heads_before", before}, {"heads_after", before - chosen.size()}};
}

nlohmann::ordered_json PruneStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "prune" : options_.name;
  auto model = context.model(options_.model);
  const auto there = model->heads();
  HeadSet removed;
  if (options_.closed_gates) {
    for (const auto& [site, mixer] : model->mixers())
      if (const auto* attention = attention_in(*mixer))
        for (const auto& gate : attention->gate_list())
          for (auto position : gate->closed())
            removed.push_back({site.stack, site.layer, attention->heads()[position]});
    removed = sorted_set(std::move(removed));
  } else {
    removed = options_.choose(context, there, context.seed_of(stage));
  }
  const auto masked = context.masked(options_.model);  // they stay without effect
  removed.insert(removed.end(), masked.begin(), masked.end());
  removed = sorted_set(std::move(removed));
  const auto& task = context.task(options_.task);
  const auto parameters = model->parameter_count(), flops = model->flops(task.longest(), task.longest());
  const auto seconds = seconds_of(*model, task);
  const auto kept = without(there, removed);
  model->keep(kept);
  context.keep_model(stage, model, context.model_options(options_.model));
  const auto before = heads_of(there).size(), after = heads_of(kept).size();
  const auto share =
      100.0 * static_cast<double>(parameters - model->parameter_count()) / static_cast<double>(parameters);
  const std::string method = options_.random                 ? "random"
                             : !options_.scores.empty()      ? options_.scores
                             : !options_.scores_file.empty() ? "scores of a file"
                             : options_.closed_gates         ? "closed gates"
                                                             : "named heads";
  const auto seconds_after = seconds_of(*model, task);
  const auto flops_after = model->flops(task.longest(), task.longest());
  context.console().line(
      "prune", method + ", " + std::to_string(removed.size()) + " of " + std::to_string(before) + "   kept " +
                   left_in(kept) + ";  parameters -" + fixed(share, 0) + " %, products -" +
                   fixed(100.0 * static_cast<double>(flops - flops_after) / static_cast<double>(flops), 0) + " %");
  return {{"removed", names_of(removed)},    {"kept", to_json(kept)},
          {"heads_before", before},          {"heads_after", after},
          {"parameters_before", parameters}, {"parameters_after", model->parameter_count()},
          {"flops_before", flops},           {"flops_after", flops_after},
          {"seconds_before", seconds},       {"seconds_after", seconds_after}};
}

}  // namespace headlab
