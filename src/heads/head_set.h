#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "modules/base/fields.h"
#include "modules/base/heads.h"

namespace headlab {

/// A value for each head, and what made it. A file that a person can edit: {"method", "of", "heads": {"enc.self.0.3":
/// 0.12}}.
struct HeadScores {
  std::string method;  // "gradient"
  std::string of;      // the model it was measured on: the stage that made it
  std::map<HeadId, double> heads;

  /// How unequal they are: sum_ij |s_i - s_j| / (2 n^2 mean), 0 where all are equal and towards 1 where one head has
  /// all (Gini's coefficient). Nothing where a score is below 0 or all are 0.
  std::optional<double> gini() const;
  nlohmann::ordered_json to_json() const;
  static HeadScores from_json(const nlohmann::ordered_json& json, const std::string& from);
};

/// A selection of heads, without repeats, in the order of their names.
using HeadSet = std::vector<HeadId>;
HeadSet sorted_set(HeadSet heads);
HeadSet parse_heads(const std::vector<std::string>& names);  // throws UsageError
std::vector<std::string> names_of(const HeadSet& heads);
nlohmann::ordered_json to_json(const HeadTable& table);  // {"enc.self": [[0, 3], [1]], ...}
HeadTable table_from_json(const nlohmann::ordered_json& json);

/// `table` without `removed`, each of which must be in it (UsageError otherwise).
HeadTable without(HeadTable table, const HeadSet& removed);
/// Heads of `table` in these stacks; no stacks named: all.
HeadSet heads_in(const HeadTable& table, const std::vector<std::string>& stacks);

/// Which heads to take, lowest scores first.
struct SelectOptions : Described<SelectOptions> {
  std::optional<double> fraction;
  std::optional<int64_t> count;
  std::optional<double> threshold;
  std::string scope = "global";
  std::vector<std::string> stacks;
  bool highest = false;
  void describe(Fields& fields) override;
  int given() const { return fraction.has_value() + count.has_value() + threshold.has_value(); }  // must be 1 to select
};

/// The heads of `there` to take by their scores; ties go by name. Fractions are rounded down to whole heads, of all
/// heads (scope global), of each stack or of each layer. A head of `there` without a score, or a score for a head that
/// is not there, is a UsageError: the scores are another model's.
HeadSet select_heads(const HeadTable& there, const HeadScores& scores, const SelectOptions& options);

/// As many heads drawn at random, uniformly and without repeats, in the same scope.
HeadSet random_heads(const HeadTable& there, const SelectOptions& options, uint64_t seed);

}  // namespace headlab
