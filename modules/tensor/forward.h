#pragma once

#include <map>
#include <string>
#include <vector>

#include "modules/base/heads.h"
#include "modules/tensor/shapes.h"

namespace headlab {

struct AttentionCall;
struct Forward;

/// The places of a forward pass that can be read or replaced.
/// q, k, v: after position.  x: the attention's input, after its norm.  z: heads before the gates.  o: z_h W_O^h
/// [B,H,T,D]. residual_in, residual_mid, residual_out: the residual stream before a layer, after its attentions, after
/// its feed-forward.
enum class At { x, memory, q, k, v, scores, weights, z, o, y, residual_in, residual_mid, residual_out, logits };

/// Every analysis, probe, patch and intervention is a tap: it says what it wants, and returns what it saw or a
/// replacement. Asking for scores or weights makes that layer leave the fused kernel. No tap, no cost.
struct Tap {
  virtual ~Tap() = default;
  virtual bool wants(At at, Site site) const = 0;
  virtual Tensor see(At at, Site site, Tensor value, const AttentionCall* call) = 0;
};

/// A loss that a module adds to the objective: sum / count, weighted by the module's own coefficient already.
struct Aux {
  std::string name;
  Site site;
  Tensor sum;    // scalar
  Tensor count;  // scalar: what the sum is over (tokens, or 1)
};

/// What is done to a model wherever it is used: heads scaled, places of its passes read or replaced.
struct Intervention {
  std::map<Stack, Tensor> scale;  // as Forward's
  std::vector<Tap*> taps;
  Intervention() = default;
  Intervention(std::map<Stack, Tensor> scale) : scale(std::move(scale)) {}  // NOLINT: a scale alone is one
  void enter(Forward& run) const;
};

/// All that travels with one forward pass. A pass never changes its module: what it learns leaves in aux and stats.
struct Forward {
  std::vector<Tap*> taps;
  /// Multiplies each head's z, by original head index: [L,H] or, for a scale per example, [B,L,H]. Masks, ablation,
  /// head dropout and importance gradients are this tensor.
  std::map<Stack, Tensor> scale;
  std::map<std::string, Tensor> side;  // per-example data for entries that ask for it
  Tensor rows_B;                       // which example each row (a beam) is of; undefined: row b is example b
  /// Seeds the draws of this pass that are not dropout (gate noise); a draw depends on it, its name and its site alone.
  uint64_t noise_seed = 0;
  std::vector<Aux> aux;                 // out
  std::map<std::string, Tensor> stats;  // out: applied once an optimiser step

  bool wants(At at, Site site) const;
  /// Shows `value` to each tap that wants it, in turn; the result of one goes to the next.
  Tensor see(At at, Site site, Tensor value, const AttentionCall* call = nullptr);
  /// Uniform numbers in (0,1) on the CPU generator of this draw's own, moved to `like`'s device and type.
  Tensor uniform(const std::string& name, Site site, at::IntArrayRef shape, const Tensor& like) const;
};

}  // namespace headlab
