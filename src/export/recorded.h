#pragma once

#include <torch/csrc/jit/api/module.h>

#include "modules/model/model.h"

/// What the exports of all models share.
namespace headlab {

/// The tensors of the caches, self before cross, layer by layer. Attentions without heads have none.
c10::List<Tensor> flat(const StackState& state);

/// The inverse of flat, for caches that hold as many tensors as those of `like`.
StackState unflat(const c10::List<Tensor>& all, const StackState& like);

/// (logits, caches)
c10::IValue with_caches(const Tensor& logits, const StackState& state);

/// The largest difference of what a file gives from what the model gives. Throws Error, beginning with `where`, where
/// the shapes differ or the difference is above 1e-5 (float64: 1e-10) of the largest expected value, at least of 1.
double compare_outputs(const std::string& where, const Tensor& expected, const Tensor& got);

/// Multiplies matrices that follow each other into one another, in each mixer that can (Mixer::absorb).
void absorb_maps(Model& model);

/// 1e-5, or for float64 1e-10.
double export_tolerance(torch::Dtype type);

}  // namespace headlab
