#include "src/convert/head_groups.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace headlab {
namespace {

/// The same groups, numbered by their first heads.
std::vector<int64_t> numbered(const std::vector<int64_t>& group_of) {
  std::vector<int64_t> first, result;
  for (auto group : group_of) {
    const auto found = std::find(first.begin(), first.end(), group);
    result.push_back(found - first.begin());
    if (found == first.end()) first.push_back(group);
  }
  return result;
}

}  // namespace

std::vector<int64_t> similar_groups(const std::vector<std::vector<double>>& alike_HH, int64_t count, bool complete) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t h = 0; h < alike_HH.size(); ++h) groups.push_back({h});
  const auto alike = [&](const auto& a, const auto& b) {
    double least = std::numeric_limits<double>::infinity(), sum = 0;
    for (auto i : a)
      for (auto j : b) {
        least = std::min(least, alike_HH[i][j]);
        sum += alike_HH[i][j];
      }
    return complete ? least : sum / static_cast<double>(a.size() * b.size());
  };
  while (static_cast<int64_t>(groups.size()) > count) {
    std::size_t first = 0, second = 1;
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < groups.size(); ++a)
      for (std::size_t b = a + 1; b < groups.size(); ++b)
        if (const auto found = alike(groups[a], groups[b]); found > most) {
          most = found;
          first = a;
          second = b;
        }
    groups[first].insert(groups[first].end(), groups[second].begin(), groups[second].end());
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
  }
  std::vector<int64_t> group_of(alike_HH.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (auto h : groups[g]) group_of[h] = static_cast<int64_t>(g);
  return numbered(group_of);
}

std::vector<int64_t> contiguous_groups(int64_t heads, int64_t count) {
  std::vector<int64_t> group_of;
  for (int64_t h = 0; h < heads; ++h) group_of.push_back(h * count / heads);
  return group_of;
}

std::vector<int64_t> random_groups(int64_t heads, int64_t count, Random& random) {
  auto group_of = contiguous_groups(heads, count);
  random.shuffle(group_of);
  return numbered(group_of);
}

std::vector<int64_t> group_budgets(const std::vector<double>& weights, const std::vector<int64_t>& sizes,
                                   int64_t total) {
  const auto most = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total < static_cast<int64_t>(sizes.size()) || total > most)
    throw std::logic_error("group_budgets: a total that can't be reached");
  std::vector<int64_t> counts(sizes.size(), 1);
  for (auto left = total - static_cast<int64_t>(sizes.size()); left > 0; --left) {
    auto next = counts.size();
    const auto share = [&](std::size_t i) { return weights[i] / static_cast<double>(counts[i]); };
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] >= sizes[i]) continue;
      if (next == counts.size() || share(i) > share(next) || (share(i) == share(next) && counts[i] < counts[next]))
        next = i;
    }
    ++counts[next];
  }
  return counts;
}

}  // namespace headlab
