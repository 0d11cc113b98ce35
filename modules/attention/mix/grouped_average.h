#pragma once

#include "modules/attention/mix/concatenate.h"

namespace headlab {

struct GroupedAverageOptions : Described<GroupedAverageOptions> {
  bool bias = true;
  std::optional<int64_t> concatenated;
  void describe(Fields& fields) override;
};

/// C heads at a time are concatenated and multiplied by one W_O, and the H / C products averaged          (2507.07694,
/// PEAA)
///   y = C/H sum_g Concat(z_gC, ..., z_gC+C-1) W_O + b = C/H sum_h z_h W_O^(h mod C) + b,   W_O [D, C K_v]
/// z_BHTK -> y_BTD. The average is made before the product, which costs what C heads cost. Heads keep their places when
/// others are removed: the sum is over those that are left, H is the original number, and W_O stays whole. Throws
/// ShapeError where grouped_average_problem() finds one.
class GroupedAverage : public Mix {
 public:
  GroupedAverage(const GroupedAverageOptions& options, Shape shape);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Tensor per_head(const Tensor& z_BHTK) override;
  Tensor nothing() const override;
  void axes(HeadAxes) const override {}
  int64_t flops(int64_t T, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  std::vector<int64_t> places() const;
  std::vector<std::vector<int64_t>> heads_by_place() const;
  Shape shape_;
  int64_t together_;    // C
  Tensor weight, bias;  // [D, C K_v], [D]
};

/// Why H heads whose values have this width can't be averaged so in a model of width D; empty: they can.
std::string grouped_average_problem(const GroupedAverageOptions& options, int64_t D, int64_t H, int64_t value_width);

void grouped_average_rule(const GroupedAverageOptions& options, const AttentionAround& around);

}  // namespace headlab
