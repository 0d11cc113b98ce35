#include "src/heads/agreement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "modules/base/error.h"

namespace headlab {
namespace {

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto i, auto j) { return values[i] < values[j]; });
  std::vector<double> rank(values.size());
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (auto i = from; i < to; ++i) rank[order[i]] = static_cast<double>(from + to - 1) / 2;
  }
  return rank;
}

HeadScores of_stack(const HeadScores& scores, Stack stack) {
  HeadScores part;
  for (const auto& [head, value] : scores.heads)
    if (head.stack == stack) part.heads[head] = value;
  return part;
}

}  // namespace

std::optional<double> rank_correlation(const HeadScores& one, const HeadScores& other) {
  std::vector<double> a, b;
  for (const auto& [head, value] : one.heads) {
    const auto found = other.heads.find(head);
    if (found == other.heads.end() || one.heads.size() != other.heads.size())
      throw UsageError("agreement of scores: expected two scores of the same heads, got " +
                       std::to_string(one.heads.size()) + " and " + std::to_string(other.heads.size()) + " heads" +
                       (found == other.heads.end() ? ", without " + to_string(head) + " among the latter" : ""));
    a.push_back(value);
    b.push_back(found->second);
  }
  a = ranks(a);
  b = ranks(b);
  const auto middle = (static_cast<double>(a.size()) - 1) / 2;  // the mean of ranks, shared or not
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  if (!(aa > 0) || !(bb > 0)) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

nlohmann::ordered_json agreement(const HeadScores& one, const HeadScores& other) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json{{"all", number(rank_correlation(one, other))}};
  std::set<Stack> stacks;
  for (const auto& [head, value] : one.heads) stacks.insert(head.stack);
  for (const auto stack : stacks)
    json[stack_name(stack)] = number(rank_correlation(of_stack(one, stack), of_stack(other, stack)));
  return json;
}

}  // namespace headlab
