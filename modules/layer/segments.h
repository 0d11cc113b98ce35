#pragma once

#include "modules/base/fields.h"
#include "modules/mixer/mixer.h"

namespace headlab {

/// How a text is read: as one, or segment after segment.
struct SegmentOptions : Described<SegmentOptions> {
  std::optional<int64_t> length;  // tokens of a segment; absent: the whole text
  std::optional<int64_t> memory;  // tokens before a segment that it still sees; absent: length
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Segment-level recurrence          (1901.02860, section 3.2)
///
/// Token t of segment c (tokens c L to (c+1) L - 1 of the text) has a query, and looks at the keys from c L - M to t.
/// What a layer makes of the M tokens before the segment is given to it as it is: their keys and values are made anew
/// from the inputs that the attention had for them, but no gradient goes into those inputs. So the gradient of a
/// token's loss stays in its segment, while what it sees reaches M tokens further back with each layer.
///
/// One pass reads one text with all its segments, and a step's memory is of the step's weights. (The paper's program
/// keeps the memory from one step to the next, of weights that have moved since.) Under pre-norm the inputs are those
/// after the norm.
///
/// With a cache, where a tap looks, and while relevance flows or a pass is recorded, it is one call that hides the
/// other keys: the same numbers, but gradients go through the memory there. call.x_BTD -> y_BTD of the attention,
/// causal. L = length, M = memory.
Tensor attend_in_segments(Mixer& attention, const SegmentOptions& options, const AttentionCall& call);

/// As Mixer::flops of a text of T tokens: the keys and values of the memory are made twice, and counted twice.
int64_t flops_in_segments(const Mixer& attention, const SegmentOptions& options, int64_t T);

}  // namespace headlab
