#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct OffsetOptions : Described<OffsetOptions> {
  std::vector<int64_t> offsets;
  void describe(Fields& fields) override {
    fields.add("offsets", offsets, "how far back each head looks, one number a head; negative: ahead")
        .unit("tokens")
        .required();
  }
};

/// Heads that look at one place each: head h of the token at p sees the key at p - offset_h alone, with weight 1.
///                                                                        (fixed patterns, 2002.10260, section 3)
/// bias = 0 there and -inf elsewhere; a token without such a key gets zeros.
/// q_pos [T] or [B,T], k_pos [S] or [B,S] -> bias [1,H,T,S] or [B,H,T,S].
/// A removed head takes its offset with it. Throws ShapeError in a cross-attention and for another count than the
/// heads'.
class Offset : public Position, public Initialised {
 public:
  Offset(const OffsetOptions& options, Shape shape);
  bool has_bias() const override { return true; }
  Tensor bias(const Tensor& q_BHTK, const Tensor& q_pos, const Tensor& k_pos) override;
  void axes(HeadAxes axes) const override { axes.head("offset", 0, 1); }
  void draw(const std::function<at::Generator(const std::string&)>&) override {}

 private:
  Tensor offset;  // [H], long, a buffer
};

void offset_rule(const OffsetOptions& options, const AttentionAround& around);

}  // namespace headlab
