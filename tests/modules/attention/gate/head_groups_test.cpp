// Which heads are alike: every rule of the grouping on hand-made features.          (2608.19203)
#include "modules/attention/gate/head_groups.h"

#include <cmath>

#include "tests/catch.h"

namespace headlab {
namespace {

using Numbers = std::vector<int64_t>;

/// A direction in the plane: the cosine of two is the cosine of the angle between them.
HeadFeatures at(double degrees, double length = 1) {
  const auto angle = degrees * std::acos(-1.0) / 180;
  return {length * std::cos(angle), length * std::sin(angle)};
}

std::vector<HeadFeatures> at_all(const std::vector<double>& degrees) {
  std::vector<HeadFeatures> all;
  for (auto one : degrees) all.push_back(at(one));
  return all;
}

}  // namespace

TEST_CASE("a cosine knows directions alone, and is 0 where there is none") {
  CHECK(cosine({3, 4}, {3, 4}) == Catch::Detail::Approx(1));
  CHECK(cosine({3, 4}, {4, 3}) == Catch::Detail::Approx(24.0 / 25));
  CHECK(cosine({1, 0}, {0, 5}) == 0);
  CHECK(cosine({1, 0}, {-2, 0}) == Catch::Detail::Approx(-1));
  CHECK(cosine({0, 0}, {1, 2}) == 0);
  CHECK(cosine(at(10, 5), at(50, 0.1)) == Catch::Detail::Approx(std::cos(40 * std::acos(-1.0) / 180)));
}

TEST_CASE("a head joins the most similar group if the cosine reaches the threshold, else it begins one") {
  const double threshold = std::cos(30.5 * std::acos(-1.0) / 180);  // within 30.5 degrees of the centroid
  CHECK(cluster(at_all({0, 30, 90, 100}), threshold) == Numbers{0, 0, 1, 1});
  CHECK(cluster(at_all({0, 31, 90, 100}), threshold) == Numbers{0, 1, 2, 2});
  CHECK(cluster(at_all({0, 50, 28}), threshold) == Numbers{0, 1, 1});  // 22 degrees from 50 are nearer than 28 from 0
  CHECK(cluster(at_all({0, 50, 22}), threshold) == Numbers{0, 1, 0});
  CHECK(cluster({{1, 0}, {0, 1}, {1, 1}}, 0.7) == Numbers{0, 1, 0});  // equally near: the first
  CHECK(cluster({}, threshold).empty());
}

TEST_CASE("the centroid of a group moves with its members") {
  const double threshold = std::cos(30.5 * std::acos(-1.0) / 180);
  // 0 and 30 have their centroid at 15, from where 45 is in reach; from the first member, 0, it would not be.
  CHECK(cluster(at_all({0, 30, 45}), threshold) == Numbers{0, 0, 0});
  CHECK(cluster(at_all({0, 45, 30}), threshold) == Numbers{0, 1, 1});
}

TEST_CASE("a group that holds a former group-mate is nearer by the bonus, and that alone") {
  const auto members = at_all({0, 40});  // cosine 0.766
  CHECK(cluster(members, 0.80, 0.05, {5, 5}) == Numbers{0, 0});
  CHECK(cluster(members, 0.80, 0.05, {5, 6}) == Numbers{0, 1});
  CHECK(cluster(members, 0.80, 0.05, {-1, -1}) == Numbers{0, 1});  // none before
  CHECK(cluster(members, 0.80, 0.05) == Numbers{0, 1});
  CHECK(cluster(members, 0.82, 0.05, {5, 5}) == Numbers{0, 1});  // 0.816 is too little
  CHECK(cluster(members, 0.80, 0, {5, 5}) == Numbers{0, 1});
  // Between two groups it turns the scale: 24 is 24 from the first and 26 from the second.
  CHECK(cluster(at_all({0, 50, 24}), 0.8, 0.05, {0, 1, -1}) == Numbers{0, 1, 0});
  CHECK(cluster(at_all({0, 50, 24}), 0.8, 0.05, {0, 1, 1}) == Numbers{0, 1, 1});
}

TEST_CASE("a bipartition is led by the two heads least alike and halves the rest by whom they are more like") {
  CHECK(bipartition(at_all({0, 10, 20, 30})) == Numbers{0, 0, 1, 1});
  CHECK(bipartition(at_all({10, 30, 0, 20})) == Numbers{1, 0, 1, 0});      // 30 leads the first group, being met first
  CHECK(bipartition(at_all({0, 1, 2, 3, 40})) == Numbers{0, 0, 0, 1, 1});  // three and two, though four are close
  CHECK(bipartition(at_all({7, 7, 7, 7})) == Numbers{0, 1, 0, 1});         // all alike: the first two lead
  CHECK(bipartition(at_all({3, 9})) == Numbers{0, 1});
  CHECK(bipartition(at_all({3})) == Numbers{0});
}

TEST_CASE("groups of fewer than two heads go into the most similar group") {
  const auto members = at_all({0, 10, 60, 90, 100});
  CHECK(merge_small(members, {0, 0, 1, 2, 2}, 2) == Numbers{0, 0, 1, 1, 1});  // 60 is nearer to 95 than to 5
  CHECK(merge_small(members, {0, 0, 1, 1, 1}, 2) == Numbers{0, 0, 1, 1, 1});
  CHECK(merge_small(members, {4, 4, 3, 7, 7}, 1) == Numbers{0, 0, 1, 2, 2});  // numbered by their first members
  CHECK(merge_small(at_all({0, 10}), {0, 1}, 2) == Numbers{0, 0});
  CHECK(merge_small(at_all({0}), {0}, 2) == Numbers{0});  // one group alone has nowhere to go
  CHECK(merge_small({}, {}, 2).empty());
}

TEST_CASE("level 0 has two groups where all heads are alike, and none of one head") {
  GroupingRules rules;
  const auto alike = group_heads(at_all({0, 2, 4, 6}), {}, rules);
  CHECK(alike[0].group_of == Numbers{0, 0, 1, 1});
  CHECK(alike[0].means.size() == 2);
  CHECK(alike[0].means[0][0] == Catch::Detail::Approx((at(0)[0] + at(2)[0]) / 2));
  CHECK(alike[0].means[1][1] == Catch::Detail::Approx((at(4)[1] + at(6)[1]) / 2));
  // The group of 180 alone merges into the nearer of the others.
  CHECK(group_heads(at_all({0, 5, 90, 95, 180}), {}, rules)[0].group_of == Numbers{0, 0, 1, 1, 1});
  // 1.5 and 47 have a cosine of 0.701, which the bonus for a former group-mate lifts over 0.72.
  CHECK(group_heads(at_all({0, 3, 47, 48, 180, 182}), {}, rules)[0].group_of == Numbers{0, 0, 1, 1, 2, 2});
  CHECK(group_heads(at_all({0, 3, 47, 48, 180, 182}), {1, 0, 1, -1, -1, -1}, rules)[0].group_of ==
        Numbers{0, 0, 0, 0, 1, 1});
  CHECK(group_heads(at_all({0}), {}, rules)[0].group_of == Numbers{0});
  CHECK(group_heads({}, {}, rules)[0].group_of.empty());
}

TEST_CASE("upper levels group the means below, until one is left, nothing joins, or the depth is reached") {
  GroupingRules rules;
  rules.sim = std::cos(6 * std::acos(-1.0) / 180);
  rules.super = std::cos(25 * std::acos(-1.0) / 180);
  // Pairs at 2, 22, 82 and 102: the second level joins the first two and the last two; 12 and 92 are too far apart.
  const auto heads = at_all({0, 4, 20, 24, 80, 84, 100, 104});
  const auto levels = group_heads(heads, {}, rules);
  REQUIRE(levels.size() == 2);
  CHECK(levels[0].group_of == Numbers{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(levels[1].group_of == Numbers{0, 0, 1, 1});
  for (int i = 0; i < 2; ++i)
    CHECK(levels[1].means[1][i] == Catch::Detail::Approx((levels[0].means[2][i] + levels[0].means[3][i]) / 2));
  rules.super = 0;  // all within 90 degrees: one group, which is the last level
  const auto collapsed = group_heads(heads, {}, rules);
  REQUIRE(collapsed.size() == 2);
  CHECK(collapsed[1].group_of == Numbers{0, 0, 0, 0});
  rules.max_depth = 1;
  CHECK(group_heads(heads, {}, rules).size() == 1);
  rules.max_depth = 4;
  rules.super = 1;  // nothing joins
  CHECK(group_heads(heads, {}, rules).size() == 1);
  // The means of 0, 14, 6 and 7.9 become those of {0, 6, 7.9} and 14, which have come near enough to join.
  rules.sim = std::cos(1.2 * std::acos(-1.0) / 180);
  rules.super = std::cos(13 * std::acos(-1.0) / 180);
  const auto steps = at_all({-0.5, 0.5, 13.5, 14.5, 5.5, 6.5, 7.4, 8.4});
  const auto deep = group_heads(steps, {}, rules);
  REQUIRE(deep.size() == 3);
  CHECK(deep[0].group_of == Numbers{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(deep[1].group_of == Numbers{0, 1, 0, 0});
  CHECK(deep[2].group_of == Numbers{0, 0});
  rules.max_depth = 2;
  CHECK(group_heads(steps, {}, rules).size() == 2);
}

TEST_CASE("siblings are groups of one parent, two and two in their order; one that is left over has none") {
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  std::vector<GroupLevel> levels(2);
  levels[0].group_of = {0, 1, 2, 3, 4, 5};
  levels[0].means.resize(6);
  levels[1].group_of = {0, 1, 0, 1, 0, 0};
  levels[1].means.resize(2);
  CHECK(sibling_pairs(levels, 0) == Pairs{{0, 2}, {1, 3}, {4, 5}});
  CHECK(sibling_pairs(levels, 1) == Pairs{{0, 1}});
  levels[1].group_of = {0, 0, 0, 1, 1, 2};
  levels[1].means.resize(3);
  CHECK(sibling_pairs(levels, 0) == Pairs{{0, 1}, {3, 4}});
  CHECK(sibling_pairs(levels, 1) == Pairs{{0, 1}});
  levels.resize(1);
  levels[0].means.resize(1);
  CHECK(sibling_pairs(levels, 0).empty());
}

TEST_CASE("no group takes a longer window than its parent, from the top down") {
  std::vector<GroupLevel> levels(3);
  levels[0].group_of = {0, 1, 1, 2, 3};  // five heads, four groups
  levels[1].group_of = {0, 0, 1, 1};
  levels[2].group_of = {0, 0};
  CHECK(clamped_choices(levels, {{3, 3, 3, 3}, {3, 3}, {3}}) == Numbers{3, 3, 3, 3, 3});
  CHECK(clamped_choices(levels, {{3, 0, 3, 2}, {1, 3}, {3}}) == Numbers{1, 0, 0, 3, 2});
  CHECK(clamped_choices(levels, {{3, 0, 3, 2}, {1, 3}, {2}}) == Numbers{1, 0, 0, 2, 2});
  CHECK(clamped_choices(levels, {{3, 3, 3, 3}, {2, 3}, {1}}) == Numbers{1, 1, 1, 1, 1});  // through two levels
  levels.resize(1);
  CHECK(clamped_choices(levels, {{3, 0, 1, 2}}) == Numbers{3, 0, 0, 1, 2});
}

}  // namespace headlab
