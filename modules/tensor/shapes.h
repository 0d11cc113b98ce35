#pragma once

#include <torch/types.h>

#include <string>

#include "modules/base/error.h"

/// The letters that a tensor's name ends in, one a dimension:
///   B batch   T query length   S key length   D model width   H heads   G key/value groups   K head width
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

/// True while a module is being recorded for export: sizes must then stay symbolic, and shortcuts that depend on them are not taken.
bool recording();

}  // namespace headlab
