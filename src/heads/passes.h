#pragma once

#include "modules/attention/call.h"
#include "src/task/readings.h"
#include "src/task/token_loss.h"

/// What looks at heads while texts pass through a model shares this.
namespace headlab {

/// The first examples of a part of the data; 0: all of them.
struct Examples {
  std::string split;
  int64_t limit = 0, max_tokens = 4096;
  void describe_examples(Fields& fields, const std::string& what = "the part of the data");
  Batches batches(const Task& task) const { return first_batches(task, split, limit, max_tokens); }
};

/// Of what is known of each query of a text, [B,T], what is known of a call's: all of it, or where a model goes step by
/// step the step's alone.
Tensor of_queries(const Tensor& of_text_BT, const AttentionCall& call);

/// The heads of a mixer that have attention weights, where taps saw any: of one with heads of two kinds, its
/// attention's.
const std::vector<int64_t>& heads_with_weights(const Mixer& mixer);

/// Throws UsageError where an attention routes tokens to heads: `who` needs `what` ("weights") of every head at every
/// token.
void refuse_routing(const Model& model, const std::string& who, const std::string& what,
                    const std::string& way_out = "");

}  // namespace headlab
