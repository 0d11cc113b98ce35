#include "modules/attention/call.h"

#include <algorithm>
#include <numeric>

#include "modules/tensor/torch.h"

namespace headlab {

void State::append(const std::vector<Tensor>& more) {
  if (stored.empty()) {
    stored = more;
    return;
  }
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = torch::cat({stored[i], more[i]}, -2);
}

void State::reorder(const Tensor& rows_B) {
  for (auto& tensor : stored) tensor = tensor.index_select(0, rows_B);
}

namespace {

// The groups that heads read, in order, and each head's place among them.
std::vector<int64_t> compact(std::vector<int64_t>& group_of) {
  auto used = group_of;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (auto& group : group_of) group = std::lower_bound(used.begin(), used.end(), group) - used.begin();
  return used;
}

}  // namespace

int64_t seen_pairs(int64_t T, int64_t S, bool causal, int64_t window) {
  if (!causal && window == 0) return T * S;
  int64_t pairs = 0;
  for (int64_t i = S - T; i < S; ++i) {
    const auto first = window > 0 ? std::max<int64_t>(0, i - window + 1) : 0;
    const auto last = causal ? i : std::min(S - 1, i + window - 1);
    pairs += last - first + 1;
  }
  return pairs;
}

void set_groups(AttentionShape& shape, int64_t groups) {
  const auto heads_per_group = std::max<int64_t>(shape.original_heads / groups, 1);
  shape.group_of.clear();
  for (auto head : shape.heads) shape.group_of.push_back(head / heads_per_group);
  if (shape.groups_shared && shape.H() > 0) {
    shape.groups.resize(groups);
    std::iota(shape.groups.begin(), shape.groups.end(), 0);
  } else {
    shape.groups = compact(shape.group_of);
  }
}

std::vector<int64_t> keep_heads(AttentionShape& shape, const std::vector<int64_t>& positions) {
  std::vector<int64_t> heads, group_of, groups;
  for (auto position : positions) {
    heads.push_back(shape.heads[position]);
    group_of.push_back(shape.group_of[position]);
  }
  std::vector<int64_t> used;
  if (shape.groups_shared && !positions.empty()) {
    used.resize(shape.groups.size());
    std::iota(used.begin(), used.end(), 0);
  } else {
    used = compact(group_of);
  }
  for (auto position : used) groups.push_back(shape.groups[position]);
  shape.heads = heads;
  shape.group_of = group_of;
  shape.groups = groups;
  return used;
}

}  // namespace headlab
