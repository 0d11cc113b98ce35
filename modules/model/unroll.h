#pragma once

#include "modules/base/fields.h"

namespace headlab {

/// The deep counterpart of a model, with one head a layer          (2106.09650)
///   L layers of H heads of width D / H and a feed-forward network of width F
///     -> L H layers of one head of that width and a feed-forward network of width F / H
/// A layer's attention is the sum of its heads, and its network the sum of H slices; the counterpart has them one after
/// another. So the parameters are the same but for norms and for biases that a sum needs once: each further layer has
/// its norms, the D biases of its output matrix and the D of its network's outer layer.
///
/// Heads of a cross-attention are unrolled with those of the self-attention beside it, and layers of `per_layer` each
/// by their own number of heads. What differs from head to head by number (the slopes of ALiBi, say) is in each layer
/// that of one head. Adds a problem for what can't be cut into heads: mixers and blocks of another kind, groups and
/// adapters that heads share, lists with an item for each head, experts, a feed-forward width that H doesn't divide.
/// `model` is then of no use. Its rules hold before.
void unroll_heads(Choice& model, Problems& problems);

}  // namespace headlab
