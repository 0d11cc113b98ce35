#pragma once

#include "modules/attention/attention.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// The maps of an attention's heads or groups, in double on the CPU: a head compares x W_Q + b_Q with y W_K + b_K and
/// reads y W_V + b_V.
struct HeadMaps {
  Tensor query_HDK, key_GDK, value_GDK;
  Tensor query_bias_HK, key_bias_GK, value_bias_GK;  // undefined: none
};

/// One for each head (G = H), what groups share and the adapters mix_heads and fuse_groups mix written out. Throws a
/// UsageError that names the site for other projects than standard and grouped, and for other adapters.
HeadMaps head_maps(const Attention& attention, Site site);

/// Writes them into an attention of the project standard or grouped, with these sizes and as many biases.
void set_head_maps(Attention& attention, const HeadMaps& maps);

/// One parameter or buffer of an attention by its name in it ("project.weight"); std::logic_error where there is none.
Tensor parameter_of(const Attention& attention, const std::string& name);

}  // namespace headlab
