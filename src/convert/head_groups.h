#pragma once

#include <cstdint>
#include <vector>

#include "modules/base/random.h"

/// Which heads go together, as plain numbers. Groups are numbered from 0 by their first heads.
namespace headlab {

/// Groups of each head so that `count` groups are left when always the two most alike are joined (agglomerative). How
/// alike two groups are is the least (complete linkage) or the mean (average linkage) of alike_HH over their heads; of
/// equals the first.
std::vector<int64_t> similar_groups(const std::vector<std::vector<double>>& alike_HH, int64_t count, bool complete);

/// floor(h count / heads), as grouped queries have it.
std::vector<int64_t> contiguous_groups(int64_t heads, int64_t count);

/// The sizes of contiguous_groups, with heads drawn.
std::vector<int64_t> random_groups(int64_t heads, int64_t count, Random& random);

/// How many groups each of several sets of heads gets: 1 at least, its size at most, `total` in all. Each further one
/// goes where weight / groups so far is largest (of equals to the fewest groups so far, then the first), so that they
/// are about proportional to the weights. `total` lies between the number of sets and the sum of sizes; weights are not
/// negative.
std::vector<int64_t> group_budgets(const std::vector<double>& weights, const std::vector<int64_t>& sizes,
                                   int64_t total);

}  // namespace headlab
