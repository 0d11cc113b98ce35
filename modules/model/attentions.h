#pragma once

#include <map>

#include "modules/attention/attention.h"
#include "modules/base/heads.h"

namespace headlab {

/// What the options of a model say of each of its attentions (of layers without another mixer in the self-attention's
/// place).
std::map<Site, AttentionOptions> attentions_of(const Choice& model);

/// The options of the same model with these attentions instead: layers that are named get a `per_layer` of their own.
/// Throws UsageError for a site that attentions_of doesn't have.
Choice with_attentions(const Choice& model, const std::map<Site, AttentionOptions>& attentions);

}  // namespace headlab
