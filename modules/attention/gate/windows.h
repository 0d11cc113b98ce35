#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct WindowsOptions : Described<WindowsOptions> {
  std::vector<int64_t> windows;
  void describe(Fields& fields) override {
    fields.add("windows", windows, "keys each head sees, itself included: one number for all heads, or one a head")
        .at_least(0)
        .unit("tokens")
        .means("0: no window")
        .required();
  }
};

/// A fixed window for each head: key j is visible to query i of head h iff i - W_h + 1 <= j <= i when the attention is
/// causal, and iff |i - j| <= W_h - 1 otherwise.          (2608.19203, the fixed plan)
/// A plan only: it changes which keys a head sees, not its output's weight. Throws ShapeError for a wrong count.
class Windows : public Gate {
 public:
  Windows(const WindowsOptions& options, Shape shape);
  void plan(HeadPlan& plan, const AttentionCall& call) override;
  void outline(HeadOutline& outline) const override { outline.window_H = of_heads(); }

 private:
  std::vector<int64_t> of_heads() const;  // that are there
  Shape shape_;
  std::vector<int64_t> windows_;  // by original head
};

/// The share of all T*H keys that the windows see, sum_h W_h / (H T).          (2608.19203)
double allocated_context_ratio(const std::vector<int64_t>& windows, int64_t length);

/// Query-key pairs that a causal window of W sees in a text of T tokens: W(W+1)/2 + (T-W)W for W <= T.
int64_t visible_pairs(int64_t window, int64_t length);

void windows_rule(const WindowsOptions& options, const AttentionAround& around);

}  // namespace headlab
