#pragma once

#include "modules/tensor/dropout.h"
#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// A row for each token of a vocabulary; as an embedding and, where tied, as the output's matrix.
class TokenTable : public torch::nn::Module, public Initialised {
 public:
  TokenTable(int64_t vocabulary, int64_t width);
  /// ids_BT (long) -> [B,T,D], times sqrt(D) where `scale`.          (1706.03762, section 3.4)
  Tensor embed(const Tensor& ids_BT, bool scale) const;
  /// h[..., D] -> h weight^T, [..., V]
  Tensor logits(const Tensor& h) const;
  int64_t vocabulary() const { return weight.size(0); }
  /// Of logits() for `count` tokens; embed() multiplies nothing.
  int64_t flops(int64_t count) const { return 2 * count * weight.numel(); }
  /// N(0, 1/D)
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor weight;  // [V, D]
};

/// Adds the positions of the tokens: positions [T] or [B,T] -> [T,D] or [B,T,D]; undefined: nothing is added.
struct AddedPosition : torch::nn::Module {
  virtual Tensor at(const Tensor& positions) = 0;
};
using AddedPositions = Registry<AddedPosition, int64_t, int64_t>;  // context: width, longest text
const AddedPositions& added_positions();
const Catalogue& added_position_catalogue();

struct SinusoidalOptions : Described<SinusoidalOptions> {
  double base = 10000;
  void describe(Fields& fields) override {
    fields.add("base", base, "longest wavelength is 2 pi base positions").above(1);
  }
};

/// PE(p, 2i) = sin(p w_i), PE(p, 2i+1) = cos(p w_i), w_i = base^(-2i/D)          (1706.03762, section 3.5)
/// An odd D ends with a sine.
class Sinusoidal : public AddedPosition {
 public:
  Sinusoidal(const SinusoidalOptions& options, int64_t width, int64_t max_length);
  Tensor at(const Tensor& positions) override;

 private:
  Tensor table;  // [max_length, D]
};

struct LearnedPositionOptions : Described<LearnedPositionOptions> {
  std::optional<double> deviation;
  void describe(Fields& fields) override {
    fields.add("deviation", deviation, "standard deviation of the table at the start")
        .at_least(0)
        .means("absent: 1/sqrt(d_model)");
  }
};

/// A row of a learned table for each position          (1706.03762, table 3 row E)
/// Starts as N(0, deviation^2). A text longer than the table never gets here: Embed refuses it.
class LearnedPositions : public AddedPosition, public Initialised {
 public:
  LearnedPositions(const LearnedPositionOptions& options, int64_t width, int64_t max_length);
  Tensor at(const Tensor& positions) override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  double deviation_;
  Tensor weight;  // [max_length, D]
};

struct NoAddedPosition : AddedPosition {
  NoAddedPosition(const NoOptions&, int64_t, int64_t) {}
  Tensor at(const Tensor&) override { return {}; }
};

struct EmbeddingOptions : Described<EmbeddingOptions> {
  bool scale = true;
  Choice position{added_position_catalogue, "sinusoidal"};
  int64_t max_length = 512;
  std::string tie = "all";
  std::optional<double> dropout;
  void describe(Fields& fields) override;
};

/// dropout(sqrt(D) E[ids] + PE[positions]). Throws ShapeError for a text longer than max_length, before any kernel
/// runs.
class Embed : public torch::nn::Module {
 public:
  /// `dropout`: p, where the options leave theirs out; `kind`: one of dropout_kinds().
  Embed(const EmbeddingOptions& options, int64_t width, double dropout, const std::string& kind = "element");
  Tensor forward(const TokenTable& tokens, const Tensor& ids_BT, const Tensor& positions, int64_t past = 0);

 private:
  bool scale_;
  int64_t max_length_;
  double dropout_;
  std::string kind_;
  std::shared_ptr<AddedPosition> position{nullptr};
};

}  // namespace headlab
