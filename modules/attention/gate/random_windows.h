#pragma once

#include "modules/attention/gate/held_windows.h"

namespace headlab {

struct RandomWindowsOptions : Described<RandomWindowsOptions> {
  std::vector<int64_t> set;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Each head draws its window uniformly from `set` when the model is initialised, by the model's seed and the layer,
/// and keeps it.          (2608.19203: the control of random windows)
class RandomWindows : public HeldWindows {
 public:
  RandomWindows(const RandomWindowsOptions& options, Shape shape)
      : HeldWindows("random_windows", std::move(shape)), set_(options.set) {}
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  std::vector<int64_t> set_;
};

}  // namespace headlab
