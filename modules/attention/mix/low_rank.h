#pragma once

#include "modules/attention/mix/concatenate.h"

namespace headlab {

struct LowRankMixOptions : Described<LowRankMixOptions> {
  bool bias = true;
  int64_t rank = 4;
  double scale = 1.0;
  void describe(Fields& fields) override;
};

/// y = Concat(z_1, ..., z_H) (W_O + scale A B) + b, A [HK_v, rank], B [rank, D], B = 0 at the start (2106.09685,
/// section 4.1) To be learned while all else is held fixed (rates with the factor 0): few numbers that change the
/// output's matrix. z_BHTK -> y_BTD.
class LowRankMix : public Concatenate {
 public:
  LowRankMix(const LowRankMixOptions& options, Shape shape);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Tensor per_head(const Tensor& z_BHTK) override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  double scale_;
  Tensor down, up;  // A^T [rank, HK_v], B^T [D, rank]
};

}  // namespace headlab
