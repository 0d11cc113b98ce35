#pragma once

#include "modules/attention/gate/held_windows.h"

namespace headlab {

struct ShuffledWindowsOptions : Described<ShuffledWindowsOptions> {
  std::vector<int64_t> windows;
  void describe(Fields& fields) override {
    fields
        .add("windows", windows,
             "keys that heads see, itself included: one window for each head of a layer, whichever it goes to")
        .at_least(0)
        .unit("tokens")
        .means("0: no window")
        .required();
  }
};

/// The given windows, dealt to the heads in an order that is drawn when the model is initialised, by its seed and the
/// layer: the same share of context as the plan `windows`, without which head has which.
/// (2608.19203: the control of shuffled identities)          Throws ShapeError for a wrong count.
class ShuffledWindows : public HeldWindows {
 public:
  ShuffledWindows(const ShuffledWindowsOptions& options, Shape shape);
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  std::vector<int64_t> given_;
};

void shuffled_windows_rule(const ShuffledWindowsOptions& options, const AttentionAround& around);

}  // namespace headlab
