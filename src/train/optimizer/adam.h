#pragma once

#include "src/train/optimizer.h"

namespace headlab {

/// Decays and epsilon of 1706.03762, section 5.3.
struct AdamOptions : Described<AdamOptions> {
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  void describe(Fields& fields) override;
};

struct AdamWOptions : AdamOptions {
  double weight_decay = 0.0;
  bool decay_vectors = false;
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<AdamWOptions>(*this); }
};

/// m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  w = w - lr m^ / (sqrt(v^) + eps)          (1412.6980, algorithm 1)
/// with m^ = m / (1-b1^t) and v^ = v / (1-b2^t), t the updates of this parameter. LibTorch's fused kernel.
class Adam : public Optimizer {
 public:
  Adam(const AdamOptions& options, const NamedParameters& parameters);
  void step(double learning_rate) override { update(learning_rate, 0, false); }
  TensorMap state() const override;
  void restore(const TensorMap& state, const std::string& from) override;

 protected:
  /// First w = w - lr weight_decay w, for vectors only where `decay_vectors`.
  void update(double learning_rate, double weight_decay, bool decay_vectors);

 private:
  AdamOptions options_;
  NamedParameters parameters_;
  std::vector<Tensor> m_, v_, steps_;  // steps_[i] is a view of all_steps_
  Tensor all_steps_;
};

/// w = w - lr (wd w + m^ / (sqrt(v^) + eps))          (1711.05101, algorithm 2)
/// The decay is of matrices alone unless `decay_vectors` says otherwise. For decay of parameters chosen by name see
/// src/train/penalty.h.
class AdamW : public Adam {
 public:
  AdamW(const AdamWOptions& options, const NamedParameters& parameters)
      : Adam(options, parameters), weight_decay_(options.weight_decay), decay_vectors_(options.decay_vectors) {}
  void step(double learning_rate) override { update(learning_rate, weight_decay_, decay_vectors_); }

 private:
  double weight_decay_;
  bool decay_vectors_;
};

}  // namespace headlab
