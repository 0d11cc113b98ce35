#pragma once

#include "src/convert/conversion.h"

namespace headlab {

/// Keys and values of its own for each head: what groups share and the adapters mix_heads and fuse_groups mix is
/// written out, exactly. W_K^h = sum_c Lambda_{c,h} W_K^c. No figures.
class StandardConversion : public Conversion {
 public:
  explicit StandardConversion(const NoOptions&) {}
  AttentionOptions options(const Attention& from, Site site) override;
  nlohmann::ordered_json weights(const Attention& from, Attention& to, Site site) override;
};

}  // namespace headlab
