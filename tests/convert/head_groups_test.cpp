#include "src/convert/head_groups.h"

#include <algorithm>
#include <numeric>

#include "tests/catch.h"

using namespace headlab;

namespace {

using Groups = std::vector<int64_t>;
using Alike = std::vector<std::vector<double>>;

/// 1 - the distance of places on a line.
Alike on_a_line(const std::vector<double>& places) {
  Alike alike;
  for (auto a : places) {
    auto& row = alike.emplace_back();
    for (auto b : places) row.push_back(1 - std::abs(a - b));
  }
  return alike;
}

}  // namespace

TEST_CASE("the most alike heads are joined first, and groups are numbered by their first heads") {
  const auto alike = on_a_line({0.0, 5.0, 0.1, 9.0, 5.3, 0.3});
  CHECK((similar_groups(alike, 3, true) == Groups{0, 1, 0, 2, 1, 0}));
  CHECK((similar_groups(alike, 4, true) == Groups{0, 1, 0, 2, 1, 3} ||
         similar_groups(alike, 4, true) == Groups{0, 1, 0, 2, 3, 0}));
  CHECK((similar_groups(alike, 6, true) == Groups{0, 1, 2, 3, 4, 5}));
  CHECK((similar_groups(alike, 1, false) == Groups{0, 0, 0, 0, 0, 0}));
  // 0, 2 | 4.6 | 5.6: the mean distance of 4.6 to the first group is 3.6, to the last 1; a chain is what only complete
  // linkage breaks
  CHECK((similar_groups(on_a_line({0, 1, 2.1, 3.3}), 2, true) == Groups{0, 0, 1, 1}));
}

TEST_CASE("average and complete linkage differ where a group is long") {
  const auto alike = on_a_line({0, 1, 2.1, 3.7, 5.7, 5.7});
  // Joined at first: the two at 5.7, 0 and 1. Then 2.1 is 1.6 from 3.7; the mean from {0, 1} is 1.6 too, the most 2.1.
  CHECK((similar_groups(alike, 3, true) == Groups{0, 0, 1, 1, 2, 2}));
  CHECK((similar_groups(on_a_line({0, 1, 2, 3.7, 5.7, 5.7}), 3, false) == Groups{0, 0, 0, 1, 2, 2}));
}

TEST_CASE("contiguous groups are those of grouped queries, random ones have their sizes") {
  CHECK((contiguous_groups(8, 2) == Groups{0, 0, 0, 0, 1, 1, 1, 1}));
  CHECK((contiguous_groups(8, 3) == Groups{0, 0, 0, 1, 1, 1, 2, 2}));
  Random random(3);
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    auto groups = random_groups(8, 3, random);
    CHECK(groups[0] == 0);
    differs = differs || groups != contiguous_groups(8, 3);
    std::vector<int64_t> sizes(3);
    for (auto group : groups) ++sizes[static_cast<std::size_t>(group)];
    std::sort(sizes.begin(), sizes.end());
    CHECK((sizes == std::vector<int64_t>{2, 3, 3}));
  }
  CHECK(differs);
}

TEST_CASE("budgets add up exactly to what they are given, one at least and all at most") {
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    const auto count = 1 + static_cast<int64_t>(random.below(8));
    std::vector<int64_t> sizes;
    std::vector<double> weights;
    for (int64_t n = 0; n < count; ++n) {
      sizes.push_back(1 + static_cast<int64_t>(random.below(12)));
      weights.push_back(random.below(4) == 0 ? 0 : random.uniform());
    }
    const auto most = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    const auto total = count + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - count + 1)));
    const auto budgets = group_budgets(weights, sizes, total);
    CHECK(std::accumulate(budgets.begin(), budgets.end(), int64_t{0}) == total);
    for (std::size_t n = 0; n < sizes.size(); ++n) CHECK((budgets[n] >= 1 && budgets[n] <= sizes[n]));
  }
}

TEST_CASE("budgets follow the weights, equal ones share alike") {
  CHECK((group_budgets({1, 1, 1, 1}, {8, 8, 8, 8}, 8) == Groups{2, 2, 2, 2}));
  CHECK((group_budgets({3, 1, 1, 1}, {8, 8, 8, 8}, 6) == Groups{3, 1, 1, 1}));
  CHECK((group_budgets({3, 1}, {8, 8}, 8) == Groups{6, 2}));
  CHECK((group_budgets({5, 1}, {4, 8}, 8) == Groups{4, 4}));  // no more than there are
  CHECK((group_budgets({0, 0}, {8, 8}, 6) == Groups{3, 3}));
}
