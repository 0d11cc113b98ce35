#pragma once

#include "modules/attention/slots.h"

namespace headlab {

/// y_t = sum over the chosen experts e of weight_t,e z_t,e W_O^e          (2210.05144, section 3)
/// z_BkTK, chosen_BTk, weight_BTk -> y_BTD; without a plan all experts, each with weight 1.
/// Multiplies only by the matrices of the experts that some token chose.
class ExpertsMix : public Mix {
 public:
  ExpertsMix(const NoOptions& options, Shape shape);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Tensor per_head(const Tensor& z_BHTK) override;
  Tensor nothing() const override;
  void axes(HeadAxes axes) const override { axes.head("weight", 0, 1); }
  int64_t flops(int64_t T, int64_t slots) const override { return 2 * T * slots * shape_->value_width * shape_->width; }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Shape shape_;
  Tensor weight;  // [E, K_v, D]
};

}  // namespace headlab
