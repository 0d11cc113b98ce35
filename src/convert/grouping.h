#pragma once

#include "src/convert/fusion_search.h"

namespace headlab {

struct GroupingOptions {
  double kv_budget = 0.25;
  std::string groups = "similar", similarity = "cosine", linkage = "complete", budgets = "similarity";
  FusionSearchOptions search;
  void describe(Fields& fields);
};

/// How alike the heads of [H,D,K] matrices are, from -1 or 0 to 1:          (1905.00414 for the second)
///   cosine   of the matrices as vectors
///   cka      |X_i^T X_j|^2 / (|X_i^T X_i| |X_j^T X_j|), Frobenius norms, columns with their mean taken off: the same
///   for X and X R, R orthogonal
std::vector<std::vector<double>> head_similarity(const Tensor& weights_HDK, const std::string& how);

/// Groups of keys and of values for each attention, round(kv_budget * all keys and values) in all: (2406.06567)
///   budgets   equal; by similarity: in proportion to 1 - the mean similarity of two heads; or by loss: to what a short
///   fusion into
///             groups of equal budgets leaves (search_fusion)
///   groups    similar (similar_groups), contiguous or random ones (src/convert/head_groups.h)
/// What the paper leaves open of budgets and clusters is our choice. Throws UsageError, which names the site, for
/// attentions with removed heads, and for a budget of less than a key and a value each.
std::map<Site, FusionGroups> group_heads(const ConversionWork& work, const GroupingOptions& options);

}  // namespace headlab
