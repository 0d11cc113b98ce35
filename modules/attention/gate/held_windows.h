#pragma once

#include "modules/attention/slots.h"
#include "modules/tensor/on_host.h"

namespace headlab {

/// A window for each head that options alone don't say: it is kept in a buffer, so that checkpoints and exported files
/// have it, and a removed head takes its own with it. What a window means is said in gate/windows.h; 0: none. At first
/// no head has one. Throws ShapeError in a cross-attention.
class HeldWindows : public Gate {
 public:
  void plan(HeadPlan& plan, const AttentionCall&) override { plan.window_H = windows(); }
  void outline(HeadOutline& outline) const override { outline.window_H = windows(); }
  void axes(HeadAxes axes) const override { axes.head("window", 0, 1); }
  /// Of the heads that are there.
  const std::vector<int64_t>& windows() const { return numbers_.of(window); }

 protected:
  /// `entry`: what messages call it, "random_windows".
  HeldWindows(const std::string& entry, Shape shape);
  /// Gives each head that is there the window of its original number.
  void set_windows(const std::vector<int64_t>& of_original_heads);
  Shape shape_;
  Tensor window;  // long [H]

 private:
  mutable OnHost<int64_t> numbers_;
};

}  // namespace headlab
