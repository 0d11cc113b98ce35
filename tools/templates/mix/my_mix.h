#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct MyMixOptions : Described<MyMixOptions> {
  bool bias = true;
  void describe(Fields& fields) override { fields.add("bias", bias, "add a learned bias to the output"); }
};

/// A learned weight s_h for each head's share of the output: y = sum_h s_h z_h W_O^h + b          (where it is from,
/// which equation) z_BHTK -> y_BTD.
class MyMix : public Mix {
 public:
  MyMix(const MyMixOptions& options, Shape shape);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Tensor per_head(const Tensor& z_BHTK) override;
  Tensor nothing() const override;
  /// `weight` has value_width columns a head, `share` one number: a removed head takes its own with it.
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t slots) const override { return 2 * T * slots * shape_->value_width * shape_->width; }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Shape shape_;
  Tensor share, weight, bias;  // [H], [D, HK_v], [D]
};

}  // namespace headlab
