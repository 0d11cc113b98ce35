#pragma once

#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

/// How a head of a recurrent decoder scores the places of what it looks at.
namespace headlab {

/// Where a head has looked so far.
struct Looked {
  Tensor last_BS;  // the weights of the step before; at first equal ones over the real places
  Tensor sum_BS;   // the sum of all weights so far; at first zeros
};

struct EnergyPlace {
  int64_t memory_width = 0, query_width = 0;  // E, U
};

/// h_BSE, q_BU -> e_BS by a matrix of each, W_e h and W_d q, and what an entry makes of both.
class Energy : public torch::nn::Module {
 public:
  Energy(int64_t width, const EnergyPlace& place, bool bias);
  /// What does not change from step to step, made once a text: [B,S,A].
  virtual Tensor keys(const Tensor& h_BSE) { return memory->forward(h_BSE); }
  virtual Tensor energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) = 0;
  /// Of the products of one step over S places.
  int64_t flops(int64_t S) const { return 2 * (query->weight.numel() + S * of_place()); }
  /// Of keys().
  int64_t flops_once(int64_t S) const { return 2 * S * memory->weight.numel(); }
  int64_t width() const { return memory->weight.size(0); }

 protected:
  /// Multiplications at one place in one step.
  virtual int64_t of_place() const { return width(); }
  torch::nn::Linear memory{nullptr}, query{nullptr};  // W_e, W_d
};

using Energies = Registry<Energy, const EnergyPlace&>;
const Energies& energies();
const Catalogue& energy_catalogue();

struct EnergyOptions : Described<EnergyOptions> {
  int64_t width = 32;
  void describe(Fields& fields) override;
};

struct LocationEnergyOptions : Described<LocationEnergyOptions> {
  int64_t width = 32, channels = 8, kernel = 7;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// tanh(W_e h) . tanh(W_d q)          (1804.08050)
class DotEnergy : public Energy {
 public:
  DotEnergy(const EnergyOptions& options, const EnergyPlace& place) : Energy(options.width, place, /*bias=*/false) {}
  Tensor keys(const Tensor& h_BSE) override { return memory->forward(h_BSE).tanh(); }
  Tensor energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) override;
};

/// g . tanh(W_e h + W_d q + b + what an heir adds)          (1409.0473)
class AdditiveEnergy : public Energy {
 public:
  AdditiveEnergy(int64_t width, const EnergyPlace& place);
  AdditiveEnergy(const EnergyOptions& options, const EnergyPlace& place) : AdditiveEnergy(options.width, place) {}
  Tensor energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) override;

 protected:
  /// [B,S,A]; undefined: nothing.
  virtual Tensor more(const Looked&) { return {}; }

 private:
  torch::nn::Linear score{nullptr};  // g
};

/// ... + W_l f,  f = a_{l-1} convolved with `channels` filters of `kernel` places          (1506.07503)
class LocationEnergy : public AdditiveEnergy {
 public:
  LocationEnergy(const LocationEnergyOptions& options, const EnergyPlace& place);

 private:
  Tensor more(const Looked& looked) override;
  int64_t of_place() const override { return width() + filters->weight.numel() + location->weight.numel(); }
  int64_t kernel_;
  torch::nn::Linear filters{nullptr}, location{nullptr};
};

/// ... + W_c sum_{l' < l} a_{l'}          (1601.04811, as 1804.08050 uses it)
class CoverageEnergy : public AdditiveEnergy {
 public:
  CoverageEnergy(const EnergyOptions& options, const EnergyPlace& place);

 private:
  Tensor more(const Looked& looked) override { return coverage->forward(looked.sum_BS.unsqueeze(-1)); }
  int64_t of_place() const override { return width() + coverage->weight.numel(); }
  torch::nn::Linear coverage{nullptr};
};

}  // namespace headlab
