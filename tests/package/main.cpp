// What an installed headlab gives another project: the networks, and LibTorch with them.
#include <torch/version.h>

#include <cstdio>

#include "modules/attention/attention.h"

int main() {
  headlab::AttentionOptions options;
  options.heads = 4;
  headlab::Attention attention(options, /*width=*/16, /*memory_width=*/16, /*cross=*/false);
  std::printf("headlab %zu heads, LibTorch %d.%d\n", attention.heads().size(), TORCH_VERSION_MAJOR,
              TORCH_VERSION_MINOR);
  return attention.heads().size() == 4 ? 0 : 1;
}
