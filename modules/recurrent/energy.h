#pragma once

#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

/// How a recurrent decoder scores the places of what it looks at.
namespace headlab {

/// Where a head has looked so far.
struct Looked {
  Tensor last_BS;  // the weights of the step before; at first equal ones over the real places
  Tensor sum_BS;   // the sum of all weights so far; at first zeros
};

/// h_BSE, q_BU -> e_BS. `keys` is what does not change from step to step, made once a text.
struct Energy : torch::nn::Module {
  virtual Tensor keys(const Tensor& h_BSE) = 0;
  virtual Tensor energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) = 0;
  /// Of the products of one step over S places; `once`: of keys().
  virtual int64_t flops(int64_t S) const = 0;
  virtual int64_t flops_once(int64_t S) const = 0;
};

struct EnergyPlace {
  int64_t memory_width = 0, query_width = 0;  // E, U
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
  DotEnergy(const EnergyOptions& options, const EnergyPlace& place);
  Tensor keys(const Tensor& h_BSE) override;
  Tensor energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) override;
  int64_t flops(int64_t S) const override;
  int64_t flops_once(int64_t S) const override;

 private:
  torch::nn::Linear memory{nullptr}, query{nullptr};
};

/// g . tanh(W_e h + W_d q + b + what an heir adds)          (1409.0473)
class AdditiveEnergy : public Energy {
 public:
  AdditiveEnergy(const EnergyOptions& options, const EnergyPlace& place);
  Tensor keys(const Tensor& h_BSE) override;
  Tensor energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) override;
  int64_t flops(int64_t S) const override;
  int64_t flops_once(int64_t S) const override;

 protected:
  /// [B,S,A]; undefined: nothing.
  virtual Tensor more(const Looked&) { return {}; }

 private:
  torch::nn::Linear memory{nullptr}, query{nullptr}, score{nullptr};
};

/// ... + W_l f,  f = a_{l-1} convolved with `channels` filters of `kernel` places          (1506.07503)
class LocationEnergy : public AdditiveEnergy {
 public:
  LocationEnergy(const LocationEnergyOptions& options, const EnergyPlace& place);
  int64_t flops(int64_t S) const override;

 private:
  Tensor more(const Looked& looked) override;
  int64_t kernel_;
  torch::nn::Linear filters{nullptr}, location{nullptr};
};

/// ... + W_c sum_{l' < l} a_{l'}          (1601.04811, as 1804.08050 uses it)
class CoverageEnergy : public AdditiveEnergy {
 public:
  CoverageEnergy(const EnergyOptions& options, const EnergyPlace& place);
  int64_t flops(int64_t S) const override;

 private:
  Tensor more(const Looked& looked) override;
  torch::nn::Linear coverage{nullptr};
};

}  // namespace headlab
