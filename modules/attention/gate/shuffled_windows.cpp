#include "modules/attention/gate/shuffled_windows.h"

#include "modules/attention/rules.h"
#include "modules/tensor/torch.h"

namespace headlab {

ShuffledWindows::ShuffledWindows(const ShuffledWindowsOptions& options, Shape shape)
    : HeldWindows("shuffled_windows", std::move(shape)), given_(options.windows) {
  if (given_.size() != static_cast<std::size_t>(shape_->original_heads))
    throw ShapeError("gates.shuffled_windows: expected one window for each of " +
                     std::to_string(shape_->original_heads) + " heads, got " + std::to_string(given_.size()));
}

void ShuffledWindows::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto order = torch::rand({shape_->original_heads}, generator("window"), torch::kFloat64).argsort();
  std::vector<int64_t> dealt;
  for (int64_t h = 0; h < shape_->original_heads; ++h) dealt.push_back(given_[order[h].item<int64_t>()]);
  set_windows(dealt);
}

void shuffled_windows_rule(const ShuffledWindowsOptions& options, const AttentionAround& around) {
  if (options.windows.size() != static_cast<std::size_t>(around.options.heads))
    around.problem("windows", "expected one window for each of " + std::to_string(around.options.heads) +
                                  " heads, got " + std::to_string(options.windows.size()));
}

}  // namespace headlab
