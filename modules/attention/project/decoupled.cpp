#include "modules/attention/project/decoupled.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "modules/attention/project/absorb.h"
#include "modules/attention/project/split_heads.h"
#include "modules/attention/rules.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

std::vector<int64_t> groups_of_each(const std::vector<int64_t>& map, const std::optional<int64_t>& groups,
                                    int64_t heads) {
  if (!map.empty()) return map;
  std::vector<int64_t> contiguous;
  for (int64_t h = 0; h < heads; ++h) contiguous.push_back(groups ? h * *groups / heads : h);
  return contiguous;
}

int64_t group_count(const std::vector<int64_t>& map) {
  return map.empty() ? 0 : *std::max_element(map.begin(), map.end()) + 1;
}

/// Those that occur, and where each stands among them.
std::pair<std::vector<int64_t>, std::vector<int64_t>> compacted_units(const std::vector<int64_t>& units) {
  const std::set<int64_t> used(units.begin(), units.end());
  std::vector<int64_t> there(used.begin(), used.end()), place;
  for (auto unit : units) place.push_back(std::lower_bound(there.begin(), there.end(), unit) - there.begin());
  return {there, place};
}

/// Whether group i has unit i, so that units are read as they are stored.
bool one_each(const std::vector<int64_t>& unit_of) {
  for (std::size_t i = 0; i < unit_of.size(); ++i)
    if (unit_of[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

void DecoupledProjectOptions::describe(Fields& fields) {
  fields.add("k_map", k_map, "for each head the group whose keys it reads, from 0")
      .at_least(0)
      .means("empty: by k_groups");
  fields.add("v_map", v_map, "for each head the group whose values it reads, from 0")
      .at_least(0)
      .means("empty: by v_groups");
  fields.add("k_groups", k_groups, "groups of keys, heads in order")
      .at_least(1)
      .means("absent: by k_map, or keys for each head");
  fields.add("v_groups", v_groups, "groups of values, heads in order")
      .at_least(1)
      .means("absent: by v_map, or values for each head");
  fields.add("bias", bias, "add a learned bias to q, k and v");
}

void DecoupledProjectOptions::rules(Problems& problems) const {
  const auto check = [&](const std::string& what, const std::vector<int64_t>& map,
                         const std::optional<int64_t>& groups) {
    if (!map.empty() && groups)
      problems.add(what + "_groups", "expected either " + what + "_map or " + what + "_groups; leave one out");
    for (int64_t group = 0; group < group_count(map); ++group)
      if (std::count(map.begin(), map.end(), group) == 0)
        problems.add(what + "_map", "expected a head for each group up to the largest (" +
                                        std::to_string(group_count(map) - 1) + "), got none for " +
                                        std::to_string(group));
  };
  check("k", k_map, k_groups);
  check("v", v_map, v_groups);
}

std::vector<int64_t> DecoupledProjectOptions::keys_of(int64_t heads) const {
  return groups_of_each(k_map, k_groups, heads);
}
std::vector<int64_t> DecoupledProjectOptions::values_of(int64_t heads) const {
  return groups_of_each(v_map, v_groups, heads);
}

std::vector<Problems::Problem> decoupled_problems(const DecoupledProjectOptions& options, int64_t heads) {
  std::vector<Problems::Problem> found;
  const auto check = [&](const std::string& what, const std::vector<int64_t>& map,
                         const std::optional<int64_t>& groups) {
    if (!map.empty() && static_cast<int64_t>(map.size()) != heads)
      found.push_back({what + "_map", "expected a group for each of " + std::to_string(heads) + " heads, got " +
                                          std::to_string(map.size())});
    if (groups && *groups > heads)
      found.push_back({what + "_groups", "expected at most the number of heads (" + std::to_string(heads) + "), got " +
                                             std::to_string(*groups)});
  };
  check("k", options.k_map, options.k_groups);
  check("v", options.v_map, options.v_groups);
  return found;
}

DecoupledProject::DecoupledProject(const DecoupledProjectOptions& options, Shape shape) : shape_(std::move(shape)) {
  const auto H = shape_->original_heads;
  for (const auto& problem : decoupled_problems(options, H))
    throw ShapeError("project." + problem.field + ": " + problem.message);
  // Heads that read the same keys and values are one group; groups in the order of their keys, then values.
  const auto keys = options.keys_of(H), values = options.values_of(H);
  std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
  for (int64_t h = 0; h < H; ++h) pairs[{keys[h], values[h]}] = 0;
  int64_t next = 0;
  for (auto& [pair, group] : pairs) group = next++;
  std::vector<int64_t> original;  // for each head that is there
  for (auto head : shape_->heads) original.push_back(pairs.at({keys[head], values[head]}));
  if (shape_->groups_shared && shape_->H() > 0) {
    shape_->groups.resize(pairs.size());
    std::iota(shape_->groups.begin(), shape_->groups.end(), 0);
    shape_->group_of = original;
  } else {
    std::tie(shape_->groups, shape_->group_of) = compacted_units(original);
  }
  std::vector<int64_t> key_units, value_units;
  for (const auto& [pair, group] : pairs)
    if (std::count(shape_->groups.begin(), shape_->groups.end(), group) > 0) {
      key_units.push_back(pair.first);
      value_units.push_back(pair.second);
    }
  std::vector<int64_t> keys_there, values_there;
  std::tie(keys_there, key_of_) = compacted_units(key_units);
  std::tie(values_there, value_of_) = compacted_units(value_units);

  const auto rows = [&](const std::string& name, int64_t count, int64_t width) {
    const auto bias = options.bias ? register_parameter(name + "_bias", torch::zeros({count})) : Tensor();
    return std::pair{register_parameter(name + "_weight", torch::empty({count, width})), bias};
  };
  std::tie(query_weight, query_bias) = rows("query", shape_->H() * shape_->head_width, shape_->width);
  std::tie(key_weight, key_bias) =
      rows("key", static_cast<int64_t>(keys_there.size()) * shape_->head_width, shape_->memory_width);
  std::tie(value_weight, value_bias) =
      rows("value", static_cast<int64_t>(values_there.size()) * shape_->value_width, shape_->memory_width);
}

void DecoupledProject::draw(const std::function<at::Generator(const std::string&)>& generator) {
  // Each group's block counts as a matrix of its own fan, as if q, k and v were separate layers of a width for all
  // heads.
  const auto H = shape_->original_heads;
  xavier_uniform(query_weight, shape_->width, H * shape_->head_width, generator("query_weight"));
  xavier_uniform(key_weight, shape_->memory_width, H * shape_->head_width, generator("key_weight"));
  xavier_uniform(value_weight, shape_->memory_width, H * shape_->value_width, generator("value_weight"));
  for (auto& item : named_parameters())
    if (item.value().dim() == 1) item.value().zero_();
}

Tensor DecoupledProject::query(const Tensor& x_BTD, const HeadPlan&) {
  return split_heads(relevance::linear(x_BTD, query_weight, query_bias), shape_->head_width);
}

std::vector<Tensor> DecoupledProject::remember(const Tensor& memory_BSD) {
  return {split_heads(relevance::linear(memory_BSD, key_weight, key_bias), shape_->head_width),
          split_heads(relevance::linear(memory_BSD, value_weight, value_bias), shape_->value_width)};
}

bool DecoupledProject::reads_stored() const { return !one_each(key_of_) || !one_each(value_of_); }

std::vector<Tensor> DecoupledProject::read(const std::vector<Tensor>& stored) {
  if (!reads_stored()) return {stored[0], stored[1]};
  return {pick(stored[0], 1, key_of_), pick(stored[1], 1, value_of_)};
}

bool DecoupledProject::absorb(const std::vector<Tensor>& maps_qkv) {
  for (const auto& queries : {query_weight, query_bias}) absorb_map(queries, maps_qkv[0]);
  for (const auto& keys : {key_weight, key_bias}) absorb_map(keys, maps_qkv[1]);
  for (const auto& values : {value_weight, value_bias}) absorb_map(values, maps_qkv[2]);
  return true;
}

void DecoupledProject::axes(HeadAxes axes) const {
  axes.head("query_weight", 0, shape_->head_width);
  if (query_bias.defined()) axes.head("query_bias", 0, shape_->head_width);
}

void DecoupledProject::keep(const std::vector<int64_t>& positions) {
  std::set<int64_t> groups;
  for (auto position : positions) groups.insert(shape_->group_of[position]);
  if (shape_->groups_shared && !positions.empty())
    for (int64_t group = 0; group < shape_->G(); ++group) groups.insert(group);
  torch::NoGradGuard no_grad;
  const auto cut = [&](std::vector<int64_t>& unit_of, int64_t width, std::initializer_list<Tensor> parameters) {
    std::vector<int64_t> units;
    for (auto group : groups) units.push_back(unit_of[group]);
    std::vector<int64_t> there;
    std::tie(there, unit_of) = compacted_units(units);
    for (auto parameter : parameters) {
      if (!parameter.defined()) continue;
      parameter.set_data(pick(parameter.detach().unflatten(0, {-1, width}), 0, there).flatten(0, 1).clone());
      parameter.mutable_grad() = Tensor();
    }
  };
  cut(key_of_, shape_->head_width, {key_weight, key_bias});
  cut(value_of_, shape_->value_width, {value_weight, value_bias});
}

int64_t DecoupledProject::flops(int64_t T, int64_t S, int64_t slots) const {
  return 2 * T * shape_->width * slots * shape_->head_width +
         2 * S * shape_->memory_width * (key_rows() + value_rows());
}

void decoupled_rule(const DecoupledProjectOptions& options, const AttentionAround& around) {
  for (const auto& problem : decoupled_problems(options, around.options.heads))
    around.problem(problem.field, problem.message);
}

}  // namespace headlab
