#pragma once

#include <optional>

#include "modules/tensor/torch.h"

namespace headlab {

/// While it lives, this thread's matrix products and fused attention on the device take their inputs as `type`
/// (bfloat16) and give `type`; LibTorch's lists (ATen/autocast_mode.h) say which operators these are. Parameters stay
/// as they are, and so do sums of a product and something wider (the residual stream), norms of those, and gradients of
/// parameters. Without a type it does nothing.
///
/// A cast parameter is kept until the outermost guard of a thread ends: one guard must not live longer than the
/// parameters stay as they are, nor hold passes with and without gradients.
class Autocast {
 public:
  Autocast(std::optional<torch::Dtype> type, torch::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool on_, enabled_before_ = false;
  torch::Dtype type_before_ = torch::kFloat32;
};

}  // namespace headlab
