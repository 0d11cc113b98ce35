#pragma once

#include <string>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"

/// The letters that a tensor's name ends in, one a dimension:
///   B batch   T query length   S key length   D model width   H heads   G key/value groups
///   K head width (of v and z: the width of values, where that is another)
///   V vocabulary   F feed-forward width   E experts   L layers   k heads chosen for a token
/// `q_BHTK` is a tensor [batch, heads, query length, head width].
namespace headlab {

using torch::Tensor;

/// "[2, 8, 16]".
std::string shape_text(const Tensor& tensor);

/// "where: expected <expected>, got [..]", to be thrown.
inline ShapeError wrong_shape(const std::string& where, const std::string& expected, const Tensor& got) {
  return ShapeError(where + ": expected " + expected + ", got " + shape_text(got));
}

/// The type itself, or float where it has fewer than 32 bits: for angles and distances, which half precision can't
/// hold.
inline torch::Dtype at_least_float(torch::Dtype type) {
  return type == torch::kHalf || type == torch::kBFloat16 ? torch::kFloat : type;
}

/// True while a module is being recorded for export: sizes must then stay symbolic, and shortcuts that depend on them
/// are not taken.
bool recording();

}  // namespace headlab
