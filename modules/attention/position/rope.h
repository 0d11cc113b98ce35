#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct NoPosition : Position {
  NoPosition(const NoOptions&, Shape) {}
};

struct RopeOptions : Described<RopeOptions> {
  double base = 10000;
  void describe(Fields& fields) override {
    fields.add("base", base, "longest wavelength is 2 pi base positions").above(1);
  }
};

/// Rotates each pair (x_2i, x_2i+1) of q and k by position * base^(-2i/K), so that scores depend on distance alone.
/// (2104.09864, eq. 15)  x_BHTK, positions [T] or [B,T] -> x_BHTK.  Throws ShapeError for an odd head width.
class Rope : public Position {
 public:
  Rope(const RopeOptions& options, Shape shape);
  Tensor rotate(Tensor x_BHTK, const Tensor& positions) override;

 private:
  Tensor frequency;  // [K/2], radians a position
};

}  // namespace headlab
