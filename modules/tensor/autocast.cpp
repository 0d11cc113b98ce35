#include "modules/tensor/autocast.h"

#include <ATen/autocast_mode.h>

namespace headlab {

Autocast::Autocast(std::optional<torch::Dtype> type, torch::Device device)
    : device_(device.type()), on_(type.has_value()) {
  if (!on_) return;
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_dtype(device_, *type);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
}

}  // namespace headlab
