#include "src/convert/grouping.h"

#include <algorithm>
#include <cmath>

#include "modules/tensor/torch.h"
#include "src/convert/head_groups.h"
#include "src/convert/head_maps.h"

namespace headlab {
namespace {

/// The keys, or the values, of one attention.
struct HeadsOfOne {
  Site site;
  std::vector<std::vector<double>> alike_HH;
  int64_t size() const { return static_cast<int64_t>(alike_HH.size()); }
  double unlike() const {
    double sum = 0;
    for (std::size_t i = 0; i < alike_HH.size(); ++i)
      for (std::size_t j = i + 1; j < alike_HH.size(); ++j) sum += 1 - alike_HH[i][j];
    const auto pairs = static_cast<double>(size() * (size() - 1)) / 2;
    return pairs > 0 ? std::max(0.0, sum / pairs) : 0.0;
  }
};

}  // namespace

void GroupingOptions::describe(Fields& fields) {
  fields.add("kv_budget", kv_budget, "share of all heads' keys and values that is left").above(0).at_most(1);
  fields.add("groups", groups, "which heads go together").one_of({"similar", "contiguous", "random"});
  fields.add("similarity", similarity, "how alike two heads' matrices are").one_of({"cosine", "cka"});
  fields.add("linkage", linkage, "how alike groups are: their least alike heads, or the mean")
      .one_of({"complete", "average"});
  fields.add("budgets", budgets, "how many groups an attention's keys and values get")
      .one_of({"equal", "similarity", "loss"});
  fields.add("search", search, "the short fusion that budgets by loss are taken from");
}

std::vector<std::vector<double>> head_similarity(const Tensor& weights_HDK, const std::string& how) {
  const auto H = weights_HDK.size(0);
  const auto X = weights_HDK.to(torch::kFloat64);
  const auto of = [&](const Tensor& rows_HN) {  // cosines
    const auto unit = rows_HN / rows_HN.norm(2, 1, /*keepdim=*/true).clamp_min(1e-300);
    return torch::matmul(unit, unit.t());
  };
  Tensor alike = of(X.flatten(1));
  if (how == "cka") {  // the cosine of the matrices X X^T
    const auto centred = X - X.mean(1, /*keepdim=*/true);
    alike = of(torch::matmul(centred, centred.transpose(1, 2)).flatten(1));
  }
  alike = alike.contiguous();
  std::vector<std::vector<double>> result;
  for (int64_t h = 0; h < H; ++h) result.emplace_back(alike[h].data_ptr<double>(), alike[h].data_ptr<double>() + H);
  return result;
}

std::map<Site, FusionGroups> group_heads(const ConversionWork& work, const GroupingOptions& options) {
  std::vector<HeadsOfOne> sets;  // keys and values of each attention, one after the other
  std::vector<int64_t> sizes;
  int64_t all = 0;
  for (const auto& [site, attention] : work.attentions) {
    if (attention->shape().H() != attention->original_heads())
      throw UsageError("convert: " + to_string(site) + ": expected all heads; prune them after the conversion");
    const auto maps = head_maps(*attention, site);
    for (const auto& weights : {maps.key_GDK, maps.value_GDK}) {
      sets.push_back({site, head_similarity(weights, options.similarity)});
      sizes.push_back(sets.back().size());
      all += sizes.back();
    }
  }
  const auto total = std::llround(options.kv_budget * static_cast<double>(all));
  if (total < static_cast<int64_t>(sets.size()))
    throw UsageError("convert: kv_budget: expected at least " +
                     std::to_string(static_cast<double>(sets.size()) / static_cast<double>(all)) +
                     ", so that each attention has a key and a value; got " + std::to_string(options.kv_budget));
  const auto grouped_by = [&](const std::vector<int64_t>& counts) {
    auto random = Random::stream(work.seed, {text_hash("head groups")});
    std::map<Site, FusionGroups> groups;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      auto& of_site = groups[sets[i].site];
      (i % 2 == 0 ? of_site.keys : of_site.values) =
          options.groups == "similar"      ? similar_groups(sets[i].alike_HH, counts[i], options.linkage == "complete")
          : options.groups == "contiguous" ? contiguous_groups(sizes[i], counts[i])
                                           : random_groups(sizes[i], counts[i], random);
    }
    return groups;
  };
  std::vector<double> weights(sets.size(), 1);
  if (options.budgets == "similarity")
    for (std::size_t i = 0; i < sets.size(); ++i) weights[i] = sets[i].unlike();
  if (options.budgets == "loss") {
    const auto left = search_fusion(work, grouped_by(group_budgets(weights, sizes, total)), options.search);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const auto& of_site = left.at(sets[i].site);
      weights[i] = std::max(0.0, i % 2 == 0 ? of_site.keys : of_site.values);
    }
  }
  return grouped_by(group_budgets(weights, sizes, total));
}

}  // namespace headlab
