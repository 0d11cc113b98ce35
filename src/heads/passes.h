#pragma once

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

/// Throws UsageError where an attention routes tokens to heads: `who` needs `what` ("weights") of every head at every token.
void refuse_routing(const Model& model, const std::string& who, const std::string& what, const std::string& way_out = "");

}  // namespace headlab
