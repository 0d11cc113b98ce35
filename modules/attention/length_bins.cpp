#include "modules/attention/length_bins.h"

#include <algorithm>

#include "modules/tensor/torch.h"

namespace headlab {

void LengthBins::describe_bins(Fields& fields) {
  fields.add("heads", heads, "heads of the texts of each length, from short to long").at_least(1);
  fields
      .add("thresholds", thresholds,
           "the longest text of each length but the last; terciles of the training texts, for three")
      .at_least(1)
      .unit("tokens")
      .required();
}

void LengthBins::bin_rules(Problems& problems) const {
  if (heads.empty()) problems.add("heads", "expected at least one number of heads");
  if (thresholds.size() + 1 != heads.size())
    problems.add("thresholds", "expected one less than heads (" + std::to_string(heads.size()) + "), got " +
                                   std::to_string(thresholds.size()));
  for (std::size_t i = 1; i < thresholds.size(); ++i)
    if (thresholds[i] <= thresholds[i - 1])
      problems.add("thresholds[" + std::to_string(i) + "]", "expected more than the one before (" +
                                                                std::to_string(thresholds[i - 1]) + "), got " +
                                                                std::to_string(thresholds[i]));
}

int64_t LengthBins::bin_of(int64_t length) const {
  return std::count_if(thresholds.begin(), thresholds.end(), [&](int64_t threshold) { return length > threshold; });
}

Tensor LengthBins::bins_of(const AttentionCall& call) const {
  const auto& see = call.see;
  const auto there = see.key_mask_BS.defined()     ? see.key_mask_BS
                     : see.query_mask_BT.defined() ? see.query_mask_BT
                                                   : torch::ones_like(call.x_BTD.detach().select(-1, 0), torch::kBool);
  const auto length_B = there.sum(-1);
  auto bin_B = torch::zeros_like(length_B);
  for (const auto threshold : thresholds) bin_B = bin_B + length_B.gt(threshold).to(torch::kLong);
  return bin_B;
}

void check_reads_whole(const AttentionCall& call, const std::string& entry) {
  if (call.see.causal || call.state)
    throw UsageError(to_string(call.site) + ": " + entry +
                     " goes by the length of the text, which what reads it token by token does not know; "
                     "expected the self-attention of an encoder");
}

}  // namespace headlab
