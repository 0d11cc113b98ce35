#include "src/decode/pad.h"

#include <algorithm>

#include "modules/tensor/torch.h"

namespace headlab {

std::pair<Tensor, Tensor> pad_right(const std::vector<std::vector<int64_t>>& rows, int64_t pad, torch::Device device) {
  std::size_t longest = 0, shortest = rows.empty() ? 0 : rows.front().size();
  for (const auto& row : rows) {
    longest = std::max(longest, row.size());
    shortest = std::min(shortest, row.size());
  }
  const auto B = static_cast<int64_t>(rows.size()), T = static_cast<int64_t>(longest);
  auto ids = torch::full({B, T}, pad, torch::kLong);
  auto mask = torch::zeros({B, T}, torch::kBool);
  for (int64_t b = 0; b < B; ++b) {
    std::copy(rows[b].begin(), rows[b].end(), ids.data_ptr<int64_t>() + b * T);
    std::fill_n(mask.data_ptr<bool>() + b * T, rows[b].size(), true);
  }
  if (shortest == longest) return {ids.to(device), {}};
  return {ids.to(device), mask.to(device)};
}

}  // namespace headlab
