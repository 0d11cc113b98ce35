#include "src/ablate/ablate.h"

#include <algorithm>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "src/heads/scale.h"

namespace headlab {

void NamedSet::describe(Fields& fields) {
  fields.add("name", name, "what the results call it").required();
  fields.add("heads", heads, "names of heads, such as enc.self.0.3").required();
}

void RandomSets::describe(Fields& fields) {
  fields.add("sets", sets, "number of random sets").at_least(0);
  fields.add("size", size, "heads of each").at_least(1).unit("heads");
  fields.add("like", like, "an earlier prune stage: as many heads of each layer as it removed, instead of size")
      .means("empty: size");
}

void AblateOptions::describe(Fields& fields) {
  fields.add("evaluate", evaluate, "what is measured, on what");
  fields
      .add("metric", metric,
           "the metric that the table is about; it is measured even if evaluate.metrics leaves it out")
      .metric()
      .means("absent: the task's first");
  fields.add("each_head", each_head, "mask each head alone");
  fields.add("stacks", stacks, "stacks whose heads are masked alone")
      .one_of({"enc.self", "dec.self", "dec.cross"})
      .means("empty: all");
  fields.add("sets", sets, "sets of heads, each masked together");
  fields.add("random", random, "random sets of equal size");
  fields.add("replace", replace, "what takes an ablated head's place");
  fields.add("spare", spare, "tells how many heads can be masked alone with the metric no worse than this")
      .means("absent: it is not told");
}

void AblateOptions::rules(Problems& problems) const {
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (std::size_t j = 0; j < sets[i].heads.size(); ++j) {
      try {
        parse_head(sets[i].heads[j]);
      } catch (const UsageError& error) {
        problems.add("sets[" + std::to_string(i) + "].heads[" + std::to_string(j) + "]", error.what());
      }
    }
}

std::vector<NamedSet> sets_like(const HeadTable& there, const HeadSet& model, int64_t count, uint64_t seed) {
  std::map<Site, int64_t> of_layer;
  for (const auto& head : model) ++of_layer[{head.stack, head.layer}];
  std::vector<NamedSet> sets;
  for (int64_t i = 0; i < count; ++i) {
    auto random = Random::stream(seed, {static_cast<uint64_t>(i)});
    HeadSet set;
    for (const auto& [site, number] : of_layer) {
      const auto layers = there.find(site.stack);
      const auto& heads = layers == there.end() || static_cast<std::size_t>(site.layer) >= layers->second.size()
                              ? std::vector<int64_t>()
                              : layers->second[static_cast<std::size_t>(site.layer)];
      if (number > static_cast<int64_t>(heads.size()))
        throw UsageError("ablate.random.like: expected a model of which " + to_string(site) + " has " +
                         std::to_string(number) + " heads, got " + std::to_string(heads.size()));
      for (const auto index : random.sample(static_cast<int64_t>(heads.size()), number))
        set.push_back({site.stack, site.layer, heads[static_cast<std::size_t>(index)]});
    }
    auto& made = sets.emplace_back();
    made.name = "random " + std::to_string(i + 1);
    made.heads = names_of(sorted_set(std::move(set)));
  }
  return sets;
}

nlohmann::ordered_json AblateResult::to_json(const std::string& metric) const {
  nlohmann::ordered_json json{{"metric", metric},
                              {"baseline", baseline.at(metric)},
                              {"count", each.size()},
                              {"heads", nlohmann::ordered_json::object()}};
  const auto described = [&](const AblateRow& row) {
    nlohmann::ordered_json values;
    for (const auto& [name, value] : row.metrics) values[name] = value;
    values["delta"] = row.metrics.at(metric) - baseline.at(metric);
    return values;
  };
  for (const auto& row : each) json["heads"][row.name] = described(row);
  json["sets"] = nlohmann::ordered_json::array();
  for (const auto& row : sets) {
    nlohmann::ordered_json set{{"name", row.name}, {"heads", names_of(row.heads)}};
    set.update(described(row));
    json["sets"].push_back(set);
  }
  return json;
}

AblateResult ablate(Model& model, const Task& task, const AblateOptions& options, uint64_t seed,
                    const std::function<void(int64_t, int64_t)>& progress, const HeadSet& masked) {
  auto evaluation = options.evaluate;
  evaluation.samples = 0;
  const auto metric = metric_or_first(task, options.metric);
  if (std::find(evaluation.metrics.begin(), evaluation.metrics.end(), metric) == evaluation.metrics.end())
    evaluation.metrics.push_back(metric);
  const auto there = model.heads();
  AblateResult result;
  // Heads that the model is without already are not ablated once more.
  const auto all = heads_in(headlab::without(there, masked), options.stacks);
  if (options.each_head)
    for (auto head : all) result.each.push_back({to_string(head), {head}, {}});
  for (const auto& set : options.sets) result.sets.push_back({set.name, parse_heads(set.heads), {}});
  if (options.random.sets > 0 && options.random.size > static_cast<int64_t>(all.size()))
    throw UsageError("ablate.random.size: expected at most the number of heads (" + std::to_string(all.size()) +
                     "), got " + std::to_string(options.random.size));
  for (int64_t i = 0; i < options.random.sets; ++i) {
    auto random = Random::stream(seed, {static_cast<uint64_t>(i)});
    HeadSet set;
    for (auto index : random.sample(static_cast<int64_t>(all.size()), options.random.size)) set.push_back(all[index]);
    result.sets.push_back({"random " + std::to_string(i + 1), sorted_set(std::move(set)), {}});
  }
  std::vector<AblateRow*> rows;
  for (auto* part : {&result.each, &result.sets})
    for (auto& row : *part) rows.push_back(&row);
  for (auto* row : rows) mask_scale(model, row->heads);  // every head must be there before the first is evaluated
  Replacement replacement(options.replace, model, task, seed);
  const auto measured = [&](const HeadSet& heads) {
    auto with = replacement.without(heads);
    if (!masked.empty()) {
      auto scale = mask_scale(model, masked);
      for (auto& [stack, factor] : with.scale) scale[stack] = scale[stack] * factor;
      with.scale = std::move(scale);
    }
    return task.evaluate(model, evaluation, with).metrics;
  };
  result.baseline = measured({});
  int64_t done = 0;
  for (auto* row : rows) {
    row->metrics = measured(row->heads);
    if (progress) progress(++done, static_cast<int64_t>(rows.size()));
  }
  return result;
}

}  // namespace headlab
