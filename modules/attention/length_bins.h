#pragma once

#include "modules/attention/call.h"
#include "modules/base/fields.h"

namespace headlab {

/// How many heads a text gets by its length: a text of at most thresholds[0] tokens heads[0], one of at most
/// thresholds[1] tokens heads[1], ..., a longer one the last.
struct LengthBins {
  std::vector<int64_t> heads{2, 4, 8}, thresholds;
  void describe_bins(Fields& fields);
  void bin_rules(Problems& problems) const;
  int64_t bin_of(int64_t length) const;
  /// Of each text of a call, long [B]; its length is the number of tokens that no mask hides.
  Tensor bins_of(const AttentionCall& call) const;
};

/// Why a call can't be by length: it is causal, or reads on from a cache. Throws UsageError.
void check_reads_whole(const AttentionCall& call, const std::string& entry);

}  // namespace headlab
