#include "modules/attention/gate/windows.h"

#include "modules/attention/rules.h"

#include <algorithm>

namespace headlab {

Windows::Windows(const WindowsOptions& options, Shape shape) : shape_(std::move(shape)), windows_(options.windows) {
  if (shape_->cross)
    throw ShapeError(
        "gates.windows: expected a self-attention; a cross-attention's queries and keys share no positions");
  const auto heads = static_cast<std::size_t>(shape_->original_heads);
  if (windows_.size() == 1) windows_.assign(heads, windows_.front());
  if (windows_.size() != heads)
    throw ShapeError("gates.windows: expected one window, or one for each of " + std::to_string(heads) +
                     " heads, got " + std::to_string(windows_.size()));
}

std::vector<int64_t> Windows::of_heads() const {
  std::vector<int64_t> window_H;
  for (auto head : shape_->heads) window_H.push_back(windows_[head]);
  return window_H;
}

void Windows::plan(HeadPlan& plan, const AttentionCall&) { plan.window_H = of_heads(); }

double allocated_context_ratio(const std::vector<int64_t>& windows, int64_t length) {
  double seen = 0;
  for (auto window : windows) seen += static_cast<double>(window == 0 ? length : std::min(window, length));
  return seen / static_cast<double>(static_cast<int64_t>(windows.size()) * length);
}

int64_t visible_pairs(int64_t window, int64_t length) {
  const auto w = window == 0 ? length : std::min(window, length);
  return w * (w + 1) / 2 + (length - w) * w;
}

void windows_rule(const WindowsOptions& options, const AttentionAround& around) {
  const auto count = options.windows.size();
  if (count != 1 && count != static_cast<std::size_t>(around.options.heads))
    around.problem("windows", "expected one window, or one for each of " + std::to_string(around.options.heads) +
                                  " heads, got " + std::to_string(count));
}

}  // namespace headlab
