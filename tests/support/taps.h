#pragma once

#include <map>

#include "modules/tensor/forward.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// Keeps what stands at one place of each site's last pass: `Seen weights(At::weights);`
struct Seen : Tap {
  explicit Seen(At at) : at(at) {}
  const At at;
  std::map<Site, Tensor> of;
  /// Of a pass through one attention.
  const Tensor& value() const { return of.begin()->second; }
  bool wants(At one, Site) const override { return one == at; }
  Tensor see(At, Site site, Tensor value, const AttentionCall*) override { return of[site] = value; }
};

}  // namespace headlab
