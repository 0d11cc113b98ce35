#include "modules/attention/gate/head_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace headlab {
namespace {

int64_t count_of(const std::vector<int64_t>& group_of) {
  return group_of.empty() ? 0 : *std::max_element(group_of.begin(), group_of.end()) + 1;
}

std::vector<HeadFeatures> means_of(const std::vector<HeadFeatures>& members, const std::vector<int64_t>& group_of) {
  std::vector<HeadFeatures> means(static_cast<std::size_t>(count_of(group_of)));
  std::vector<int64_t> sizes(means.size(), 0);
  for (std::size_t m = 0; m < members.size(); ++m) {
    auto& mean = means[group_of[m]];
    mean.resize(members[m].size(), 0);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += members[m][i];
    ++sizes[group_of[m]];
  }
  for (std::size_t g = 0; g < means.size(); ++g)
    for (auto& number : means[g]) number /= static_cast<double>(sizes[g]);
  return means;
}

}  // namespace

double cosine(const HeadFeatures& a, const HeadFeatures& b) {
  const auto dot = [](const HeadFeatures& x, const HeadFeatures& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  const auto lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

std::vector<int64_t> cluster(const std::vector<HeadFeatures>& members, double threshold, double bonus,
                             const std::vector<int64_t>& former) {
  std::vector<int64_t> group_of;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::vector<HeadFeatures> before(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(m));
    const auto centroids = means_of(before, group_of);
    int64_t best = -1;
    double most = 0;
    for (std::size_t g = 0; g < centroids.size(); ++g) {
      bool mates = false;
      for (std::size_t other = 0; other < m && !former.empty(); ++other)
        mates = mates || (group_of[other] == static_cast<int64_t>(g) && former[m] >= 0 && former[other] == former[m]);
      const auto like = cosine(members[m], centroids[g]) + (mates ? bonus : 0);
      if (best < 0 || like > most) {
        best = static_cast<int64_t>(g);
        most = like;
      }
    }
    group_of.push_back(best >= 0 && most >= threshold ? best : static_cast<int64_t>(centroids.size()));
  }
  return group_of;
}

std::vector<int64_t> bipartition(const std::vector<HeadFeatures>& members) {
  const auto count = members.size();
  std::vector<int64_t> group_of(count, 0);
  if (count < 2) return group_of;
  std::size_t first = 0, second = 1;
  auto least = cosine(members[0], members[1]);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      if (const auto like = cosine(members[a], members[b]); like < least) {
        least = like;
        first = a;
        second = b;
      }
  std::vector<std::size_t> order;
  for (std::size_t m = 0; m < count; ++m)
    if (m != first && m != second) order.push_back(m);
  const auto leaning = [&](std::size_t m) {
    return cosine(members[m], members[first]) - cosine(members[m], members[second]);
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return leaning(a) > leaning(b); });
  order.insert(order.begin(), first);
  order.push_back(second);
  for (std::size_t i = (count + 1) / 2; i < count; ++i) group_of[order[i]] = 1;
  return group_of;
}

std::vector<int64_t> merge_small(const std::vector<HeadFeatures>& members, std::vector<int64_t> group_of,
                                 int64_t smallest) {
  for (;;) {
    std::map<int64_t, int64_t> number;  // groups in the order of their first members
    for (auto& group : group_of) group = number.emplace(group, static_cast<int64_t>(number.size())).first->second;
    const auto groups = count_of(group_of);
    int64_t small = -1;
    for (int64_t g = 0; g < groups && small < 0; ++g)
      if (std::count(group_of.begin(), group_of.end(), g) < smallest) small = g;
    if (small < 0 || groups == 1) return group_of;
    const auto means = means_of(members, group_of);
    int64_t best = -1;
    for (int64_t g = 0; g < groups; ++g)
      if (g != small && (best < 0 || cosine(means[small], means[g]) > cosine(means[small], means[best]))) best = g;
    std::replace(group_of.begin(), group_of.end(), small, best);
  }
}

std::vector<GroupLevel> group_heads(const std::vector<HeadFeatures>& heads, const std::vector<int64_t>& former,
                                    const GroupingRules& rules) {
  auto group_of = cluster(heads, rules.sim, rules.bonus, former);
  if (count_of(group_of) == 1) group_of = bipartition(heads);
  group_of = merge_small(heads, std::move(group_of), rules.smallest);
  std::vector<GroupLevel> levels{{group_of, means_of(heads, group_of)}};
  while (static_cast<int64_t>(levels.size()) < rules.max_depth && levels.back().means.size() > 1) {
    const auto& below = levels.back().means;
    auto next = cluster(below, rules.super);
    if (count_of(next) == static_cast<int64_t>(below.size())) break;
    auto means = means_of(below, next);
    levels.push_back({std::move(next), std::move(means)});
  }
  return levels;
}

std::vector<std::pair<int64_t, int64_t>> sibling_pairs(const std::vector<GroupLevel>& levels, std::size_t level) {
  std::map<int64_t, int64_t> waiting;  // by parent: the group that has no partner yet
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t group = 0; group < static_cast<int64_t>(levels[level].means.size()); ++group) {
    const auto parent = level + 1 < levels.size() ? levels[level + 1].group_of[group] : 0;
    const auto [first, alone] = waiting.emplace(parent, group);
    if (alone) continue;
    pairs.emplace_back(first->second, group);
    waiting.erase(first);
  }
  return pairs;
}

std::vector<int64_t> clamped_choices(const std::vector<GroupLevel>& levels, std::vector<std::vector<int64_t>> chosen) {
  for (std::size_t l = levels.size(); l-- > 1;)
    for (std::size_t g = 0; g < levels[l].group_of.size(); ++g)
      chosen[l - 1][g] = std::min(chosen[l - 1][g], chosen[l][levels[l].group_of[g]]);
  std::vector<int64_t> of_heads;
  for (auto group : levels.front().group_of) of_heads.push_back(chosen.front()[group]);
  return of_heads;
}

}  // namespace headlab
