#pragma once

#include <cstdint>
#include <vector>

#include "modules/tensor/torch.h"

namespace headlab {

/// The numbers of a small buffer on the host: read again only where the buffer has changed, since reading from a GPU
/// waits for it. T is the buffer's own type.
template <class T>
class OnHost {
 public:
  const std::vector<T>& of(const torch::Tensor& buffer) {
    const auto version = buffer.unsafeGetTensorImpl()->version_counter().current_version();
    if (buffer.is_cpu() || buffer.data_ptr() != place_ || version != version_ ||
        buffer.numel() != static_cast<int64_t>(numbers_.size())) {
      const auto here = buffer.detach().to(torch::kCPU).contiguous();
      numbers_.assign(here.data_ptr<T>(), here.data_ptr<T>() + here.numel());
      place_ = buffer.data_ptr();
      version_ = version;
    }
    return numbers_;
  }

 private:
  const void* place_ = nullptr;
  int64_t version_ = -1;
  std::vector<T> numbers_;
};

}  // namespace headlab
