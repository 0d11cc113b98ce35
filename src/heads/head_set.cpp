#include "src/heads/head_set.h"

#include <algorithm>
#include <cmath>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "modules/base/random.h"

namespace headlab {
namespace {

/// The pools that a scope selects from.
std::vector<HeadSet> pools(const HeadTable& there, const SelectOptions& options) {
  const auto heads = heads_in(there, options.stacks);
  if (options.scope == "global") return {heads};
  std::map<std::pair<Stack, int64_t>, HeadSet> by_place;
  for (auto head : heads) by_place[{head.stack, options.scope == "layer" ? head.layer : 0}].push_back(head);
  std::vector<HeadSet> all;
  for (auto& [place, pool] : by_place) all.push_back(std::move(pool));
  return all;
}

std::size_t number_of(const HeadSet& pool, const SelectOptions& options) {
  if (options.count) return std::min<std::size_t>(*options.count, pool.size());
  // A fraction such as 0.3 of 10 must not lose a head to rounding of the product.
  return static_cast<std::size_t>(std::floor(*options.fraction * static_cast<double>(pool.size()) + 1e-9));
}

}  // namespace

nlohmann::ordered_json HeadScores::to_json() const {
  nlohmann::ordered_json json{{"method", method}, {"of", of}, {"heads", nlohmann::ordered_json::object()}};
  for (const auto& [head, value] : heads) json["heads"][to_string(head)] = value;
  return json;
}

std::optional<double> HeadScores::gini() const {
  std::vector<double> sorted;
  for (const auto& [head, value] : heads) sorted.push_back(value);
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double sum = 0, ranked = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sum += sorted[i];
    ranked += static_cast<double>(i + 1) * sorted[i];
  }
  if (sorted.empty() || !(sorted.front() >= 0) || !(sum > 0)) return std::nullopt;
  return 2 * ranked / (n * sum) - (n + 1) / n;
}

HeadScores HeadScores::from_json(const nlohmann::ordered_json& json, const std::string& from) {
  if (!json.is_object() || !json.contains("heads") || !json["heads"].is_object())
    throw UsageError(from +
                     ": expected a file of head scores: {\"method\": ..., \"heads\": {\"enc.self.0.0\": 0.1, ...}}");
  HeadScores scores;
  scores.method = json.value("method", "");
  scores.of = json.value("of", "");
  for (const auto& [name, value] : json["heads"].items()) {
    if (!value.is_number()) throw UsageError(from + ": heads." + name + ": expected a number, got " + value.dump());
    scores.heads[parse_head(name)] = value.get<double>();
  }
  return scores;
}

HeadSet sorted_set(HeadSet heads) {
  std::sort(heads.begin(), heads.end());
  heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
  return heads;
}

HeadSet parse_heads(const std::vector<std::string>& names) {
  HeadSet heads;
  for (const auto& name : names) heads.push_back(parse_head(name));
  return sorted_set(std::move(heads));
}

std::vector<std::string> names_of(const HeadSet& heads) {
  std::vector<std::string> names;
  for (auto head : heads) names.push_back(to_string(head));
  return names;
}

nlohmann::ordered_json to_json(const HeadTable& table) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [stack, layers] : table) json[stack_name(stack)] = layers;
  return json;
}

HeadTable table_from_json(const nlohmann::ordered_json& json) {
  HeadTable table;
  for (const auto& [name, layers] : json.items()) {
    const auto stack = stack_from(name);
    if (!stack) throw UsageError("heads: no stack " + in_quotes(name) + "; expected enc.self, dec.self or dec.cross");
    table[*stack] = layers.get<std::vector<std::vector<int64_t>>>();
  }
  return table;
}

HeadTable without(HeadTable table, const HeadSet& removed) {
  for (auto head : removed) check_head(table, head);
  for (auto head : removed) {
    auto& heads = table[head.stack][head.layer];
    heads.erase(std::remove(heads.begin(), heads.end(), head.head), heads.end());
  }
  return table;
}

HeadSet heads_in(const HeadTable& table, const std::vector<std::string>& stacks) {
  HeadSet heads;
  for (auto head : heads_of(table))
    if (stacks.empty() || std::find(stacks.begin(), stacks.end(), stack_name(head.stack)) != stacks.end())
      heads.push_back(head);
  return heads;
}

void SelectOptions::describe(Fields& fields) {
  fields.add("fraction", fraction, "share of the heads to take").at_least(0).at_most(1);
  fields.add("count", count, "number of heads to take").at_least(0).unit("heads");
  fields.add("threshold", threshold, "take heads whose score is below this");
  fields.add("scope", scope, "what fraction and count are of: all heads, each stack, or each layer")
      .one_of({"global", "stack", "layer"});
  fields.add("stacks", stacks, "take heads of these stacks alone")
      .one_of({"enc.self", "dec.self", "dec.cross"})
      .means("empty: all");
  fields.add("highest", highest, "take the highest scores instead of the lowest");
}

HeadSet select_heads(const HeadTable& there, const HeadScores& scores, const SelectOptions& options) {
  for (const auto& [head, value] : scores.heads) {
    try {
      check_head(there, head);
    } catch (const UsageError& error) {
      throw UsageError("the scores are of another model: " + std::string(error.what()));
    }
  }
  HeadSet taken;
  for (auto& pool : pools(there, options)) {
    std::vector<std::pair<double, HeadId>> ranked;
    for (auto head : pool) {
      const auto found = scores.heads.find(head);
      if (found == scores.heads.end())
        throw UsageError("the scores are of another model: " + to_string(head) + " has none");
      ranked.emplace_back(options.highest ? -found->second : found->second, head);
    }
    std::sort(ranked.begin(), ranked.end());
    if (options.threshold) {
      for (const auto& [value, head] : ranked)
        if (options.highest ? -value > *options.threshold : value < *options.threshold) taken.push_back(head);
    } else {
      for (std::size_t i = 0; i < number_of(pool, options); ++i) taken.push_back(ranked[i].second);
    }
  }
  return sorted_set(std::move(taken));
}

HeadSet random_heads(const HeadTable& there, const SelectOptions& options, uint64_t seed) {
  if (options.threshold) throw UsageError("random heads: expected a fraction or a count, got a threshold");
  HeadSet taken;
  uint64_t stream = 0;
  for (auto& pool : pools(there, options)) {
    auto random = Random::stream(seed, {stream++});
    const auto number = static_cast<int64_t>(number_of(pool, options));
    for (auto i : random.sample(static_cast<int64_t>(pool.size()), number)) taken.push_back(pool[i]);
  }
  return sorted_set(std::move(taken));
}

}  // namespace headlab
