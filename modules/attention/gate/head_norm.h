#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct HeadNormOptions : Described<HeadNormOptions> {
  double epsilon = 1e-6;
  void describe(Fields& fields) override { fields.add("epsilon", epsilon, "added to the mean square").above(0); }
};

/// z_h -> gain_h * z_h / sqrt(mean_K(z_h^2) + epsilon), each head by itself.          (2601.19611, head-level norm)
class HeadNorm : public Gate {
 public:
  HeadNorm(const HeadNormOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override { axes.head("gain", 0, 1); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  double epsilon_;
  Tensor gain;  // [H, K_v]
};

}  // namespace headlab
