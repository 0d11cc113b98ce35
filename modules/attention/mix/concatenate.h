#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct ConcatenateOptions : Described<ConcatenateOptions> {
  bool bias = true;
  void describe(Fields& fields) override { fields.add("bias", bias, "add a learned bias to the output"); }
};

/// y = Concat(z_1, ..., z_H) W_O + b = sum_h z_h W_O^h + b          (1706.03762, section 3.2.2)
/// z_BHTK -> y_BTD.
class Concatenate : public Mix {
 public:
  Concatenate(const ConcatenateOptions& options, Shape shape);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Tensor per_head(const Tensor& z_BHTK) override;
  Tensor nothing() const override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t slots) const override { return 2 * T * slots * shape_->value_width * shape_->width; }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 protected:
  Shape shape_;
  Tensor weight, bias;  // [D, HK_v], [D]
};

}  // namespace headlab
