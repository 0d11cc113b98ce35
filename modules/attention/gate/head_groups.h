#pragma once

#include <cstdint>
#include <utility>
#include <vector>

/// Which heads are alike, and alike groups of them: plain numbers in, plain numbers out.          (2608.19203, code)
namespace headlab {

using HeadFeatures = std::vector<double>;

/// a . b / (|a| |b|); 0 where either has no length.
double cosine(const HeadFeatures& a, const HeadFeatures& b);

struct GroupingRules {
  double sim = 0.72;      // cosine from which a head joins a group
  double super = 0.76;    // the same for groups of groups
  double bonus = 0.05;    // added for a group that holds a former group-mate
  int64_t max_depth = 4;  // levels at most, that of heads included
  int64_t smallest = 2;   // heads of a group at least, unless there is one group alone
};

/// One level: level 0 groups heads, each further one the groups of the level below it.
struct GroupLevel {
  std::vector<int64_t> group_of;    // of each member
  std::vector<HeadFeatures> means;  // of each group: the mean of its members' features
};

/// Members one after another: each joins the group whose centroid (the mean of its members so far) has the largest
/// cosine, with `bonus` added where a member of it was a former group-mate, if that is at least `threshold`; otherwise
/// it begins a group. Of equal groups the first counts. former: the group of each member before; negative, or empty:
/// none.
std::vector<int64_t> cluster(const std::vector<HeadFeatures>& members, double threshold, double bonus = 0,
                             const std::vector<int64_t>& former = {});

/// Two groups of equal size (the first one larger by one for an odd number): the two members least alike lead them, and
/// those that are most more like the first leader go with it; of equal ones the first.
std::vector<int64_t> bipartition(const std::vector<HeadFeatures>& members);

/// Each group of fewer than `smallest` members goes, the first first, into the one with the most similar mean; groups
/// are numbered anew by their first members.
std::vector<int64_t> merge_small(const std::vector<HeadFeatures>& members, std::vector<int64_t> group_of,
                                 int64_t smallest);

/// Level 0: cluster() by `sim` and the former groups; bipartition() if one group results; merge_small(). Each further
/// level: cluster() of the means below by `super`, until one group results (it is the last level), no groups join, or
/// there are max_depth levels. Fewer than two heads give one level of as many groups.
std::vector<GroupLevel> group_heads(const std::vector<HeadFeatures>& heads, const std::vector<int64_t>& former,
                                    const GroupingRules& rules);

/// Of the groups of a level that share a parent (of the last level: of all), the first and second, the third and fourth
/// and so on.
std::vector<std::pair<int64_t, int64_t>> sibling_pairs(const std::vector<GroupLevel>& levels, std::size_t level);

/// Choices (numbers of windows that ascend) of each level's groups, from the top down c_g = min(c_g, c_parent): for
/// each head the choice of its group. `chosen[l][g]` is what group g of level l would take by itself.
std::vector<int64_t> clamped_choices(const std::vector<GroupLevel>& levels, std::vector<std::vector<int64_t>> chosen);

}  // namespace headlab
