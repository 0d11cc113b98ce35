#pragma once

#include "modules/attention/project/standard.h"

namespace headlab {

struct SimulatedOptions : Described<SimulatedOptions> {
  int64_t components = 2, kernel = 3;
  bool bias = true;
  std::string cache = "simulated";
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// The maps that make heads of components, of queries, keys or values: x_BCTd -> y_BHTK.
class HeadSimulation : public torch::nn::Module, public Initialised {
 public:
  /// `units`: original numbers of the heads that are there, of `heads`; `width`: K, where heads become wider (or
  /// narrower).
  HeadSimulation(int64_t components, int64_t component_width, int64_t heads, const std::vector<int64_t>& units,
                 int64_t kernel, std::optional<int64_t> width);
  Tensor forward(const Tensor& x_BCTd, const std::vector<int64_t>& units) const;
  void axes(HeadAxes axes, Unit unit) const;
  int64_t flops(int64_t T) const;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  int64_t component_width_;
  Tensor expand, expand_bias, refine, refine_bias;  // [H,C,k], [H], [heads left,H,k], [heads left]
  Tensor widen, widen_bias, deepen, deepen_bias;    // [K,d], [K], [K,K], [K]; undefined: the width stays
};

/// Few heads are projected, and many more and wider ones made of them          (2507.07694)
///   components   q, k, v of C heads of width d, as `standard` makes them; d is the width of values, K_v
///   heads        y = Conv(x),  y + Conv'(ReLU(y)): C heads become H, heads being the channels and a head's d numbers
///   the length
///                (Conv: C to H channels, Conv': H to H, odd `kernel`, padded to keep d)
///   width        of q and k alone, each head by itself: y = x W,  y + ReLU(y) W', from d to the width K of queries and
///   keys
/// q, k and v have maps of their own, all with biases: 2 [C H k + H^2 k + 2 H + d K + K^2 + 2 K] + [C H k + H^2 k + 2
/// H] numbers more than the components have.
///
/// Positions turn what was simulated. `cache`: "simulated" keeps H (K + K_v) numbers a token; "raw" keeps the
/// components' 2 C d and simulates all cached tokens at each step. x_BTD -> q_BHTK; memory_BSD -> k_BHSK, v_BHSK. A
/// removed head takes its rows of Conv' with it; Conv stays whole, since each head reads all its channels. Throws
/// ShapeError for an even kernel.
class Simulated : public Project {
 public:
  Simulated(const SimulatedOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  std::vector<Tensor> all(const Tensor& x_BTD, const HeadPlan& plan) override;
  bool reads_stored() const override { return raw_; }
  std::vector<Tensor> read(const std::vector<Tensor>& stored) override;
  std::optional<int64_t> cache_numbers() const override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>&) override {}

 private:
  std::vector<Tensor> simulated(const std::vector<Tensor>& kv) const;
  bool raw_;
  Shape shape_, of_components_;
  std::shared_ptr<StandardProject> components{nullptr};
  std::shared_ptr<HeadSimulation> query_heads{nullptr}, key_heads{nullptr}, value_heads{nullptr};
};

}  // namespace headlab
