#include "modules/recurrent/energy.h"

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

torch::nn::Linear map(int64_t in, int64_t out, bool bias = false) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

}  // namespace

const Energies& energies() {
  static const Energies registry =
      Energies("energy", "how a head of a recurrent decoder scores what it may look at")
          .entry<DotEnergy, EnergyOptions>("dot", "the dot product of both after a layer", "1804.08050")
          .entry<AdditiveEnergy, EnergyOptions>("additive", "a network of both", "1409.0473")
          .entry<LocationEnergy, LocationEnergyOptions>("location", "additive, and where it looked at the step before",
                                                        "1506.07503")
          .entry<CoverageEnergy, EnergyOptions>("coverage", "additive, and how much it looked there at all",
                                                "1601.04811");
  return registry;
}
const Catalogue& energy_catalogue() { return energies().catalogue(); }

void EnergyOptions::describe(Fields& fields) {
  fields.add("width", width, "width in which both are compared").at_least(1);
}

void LocationEnergyOptions::describe(Fields& fields) {
  fields.add("width", width, "width in which both are compared").at_least(1);
  fields.add("channels", channels, "filters over the weights of the step before").at_least(1);
  fields.add("kernel", kernel, "places that a filter sees, its own in the middle").at_least(1);
}

void LocationEnergyOptions::rules(Problems& problems) const {
  if (kernel % 2 == 0)
    problems.add("kernel",
                 "expected an odd number, so that a place stands in the middle; got " + std::to_string(kernel));
}

Energy::Energy(int64_t width, const EnergyPlace& place, bool bias) {
  memory = register_module("memory", map(place.memory_width, width, bias));
  query = register_module("query", map(place.query_width, width));
}

Tensor DotEnergy::energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked&) {
  return torch::matmul(keys_BSA, query->forward(q_BU).tanh().unsqueeze(-1)).squeeze(-1);
}

AdditiveEnergy::AdditiveEnergy(int64_t width, const EnergyPlace& place) : Energy(width, place, /*bias=*/true) {
  score = register_module("score", map(width, 1));
}

Tensor AdditiveEnergy::energy(const Tensor& keys_BSA, const Tensor& q_BU, const Looked& looked) {
  auto sum = keys_BSA + query->forward(q_BU).unsqueeze(1);
  if (const auto added = more(looked); added.defined()) sum = sum + added;
  return score->forward(sum.tanh()).squeeze(-1);
}

LocationEnergy::LocationEnergy(const LocationEnergyOptions& options, const EnergyPlace& place)
    : AdditiveEnergy(options.width, place), kernel_(options.kernel) {
  filters = register_module("filters", map(options.kernel, options.channels));
  location = register_module("location", map(options.channels, options.width));
}

Tensor LocationEnergy::more(const Looked& looked) {
  // A convolution is a product with the weights around each place.
  const auto around_BSk = torch::constant_pad_nd(looked.last_BS, {kernel_ / 2, kernel_ / 2}).unfold(1, kernel_, 1);
  return location->forward(filters->forward(around_BSk));
}

CoverageEnergy::CoverageEnergy(const EnergyOptions& options, const EnergyPlace& place)
    : AdditiveEnergy(options, place) {
  coverage = register_module("coverage", map(1, options.width));
}

}  // namespace headlab
