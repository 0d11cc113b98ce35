#include "modules/tensor/forward.h"

#include <ATen/CPUGeneratorImpl.h>

#include "modules/tensor/init.h"
#include "modules/tensor/torch.h"

namespace headlab {

void Intervention::enter(Forward& run) const {
  run.scale = scale;
  run.taps.insert(run.taps.end(), taps.begin(), taps.end());
}

bool Forward::wants(At at, Site site) const {
  for (const auto* tap : taps)
    if (tap->wants(at, site)) return true;
  return false;
}

Tensor Forward::see(At at, Site site, Tensor value, const AttentionCall* call) {
  for (auto* tap : taps)
    if (tap->wants(at, site)) value = tap->see(at, site, value, call);
  return value;
}

Tensor Forward::uniform(const std::string& name, Site site, at::IntArrayRef shape, const Tensor& like) const {
  auto generator = named_generator(noise_seed, to_string(site) + "/" + name);
  return torch::rand(shape, generator, torch::kFloat64).to(like.options());
}

}  // namespace headlab
