#include <algorithm>

#include "modules/base/nearest.h"
#include "src/heads/agreement.h"
#include "src/run/stages/stages.h"
#include "src/terminal/format.h"

namespace headlab {

void ScoreStageOptions::describe(Fields& fields) {
  describe_common(fields, "score");
  fields.add("scorer", scorer, "how importance is measured");
  fields.add("against", against, "score stages before, whose order of the heads is compared with this one's")
      .means("empty: none");
}

void ScoreStageOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  for (std::size_t i = 0; i < against.size(); ++i)
    if (!known.count(against[i]))
      problems.add(place + ".against[" + std::to_string(i) + "]",
                   "no earlier stage is called " + in_quotes(against[i]));
}

nlohmann::ordered_json ScoreStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "score" : options_.name;
  auto model = context.model(options_.model);
  if (!context.masked(options_.model).empty())
    throw UsageError("score: the model of " + in_quotes(context.resolve(options_.model)) +
                     " has masked heads; prune them, or score the unmasked model");
  auto scores = scorers().make(options_.scorer)->score(*model, context.task(options_.task), context.seed_of(stage));
  scores.of = options_.model.empty() ? context.latest() : options_.model;
  context.keep_scores(stage, scores);
  auto result = scores.to_json();
  const auto gini = scores.gini();
  result["gini"] = gini ? nlohmann::ordered_json(*gini) : nlohmann::ordered_json();
  if (!options_.against.empty()) result["agreement"] = nlohmann::ordered_json::object();
  for (const auto& other : options_.against) result["agreement"][other] = agreement(scores, context.scores(other));
  std::string text = scores.method + ", " + std::to_string(scores.heads.size()) + " heads";
  if (!scores.heads.empty()) {
    const auto [lowest, highest] = std::minmax_element(
        scores.heads.begin(), scores.heads.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto& [head, score] = *highest;
    result["most"] = {{"name", to_string(head)}, {"layer", head.layer}, {"head", head.head}, {"score", score}};
    text += "; least " + to_string(lowest->first) + ", most " + to_string(highest->first);
  }
  context.console().line("score", text);
  return result;
}

}  // namespace headlab
