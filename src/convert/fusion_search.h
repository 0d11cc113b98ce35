#pragma once

#include "src/convert/conversion.h"

namespace headlab {

struct FusionSearchOptions : Described<FusionSearchOptions> {
  int64_t steps = 50, max_tokens = 1024;
  double learning_rate = 0.01, lr_lambda = 0.01;
  void describe(Fields& fields) override;
};

/// The fusion groups of one attention: for each head that of its keys, and of its values.
struct FusionGroups {
  std::vector<int64_t> keys, values;
};

/// What is left of the fusion loss of keys and of values.
struct FusionLeft {
  double keys = 0, values = 0;
};

/// A short fusion of the model as it is: the mixes w of each attention (modules/attention/project/fuse_groups.h), over
/// keys and values as taps see them, learn by Adam on the task's loss and their Lagrangian, whose target falls to 0
/// within `steps`; the model's own parameters are held. Where much is left, heads resist being shared. Throws
/// UsageError, which names the site, where heads share keys and values already.
std::map<Site, FusionLeft> search_fusion(const ConversionWork& work, const std::map<Site, FusionGroups>& groups,
                                         const FusionSearchOptions& options);

}  // namespace headlab
