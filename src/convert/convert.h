#pragma once

#include "src/convert/conversion.h"

namespace headlab {

struct ConvertOptions : Described<ConvertOptions> {
  Choice to{conversion_catalogue, "mix_heads"};
  std::vector<std::string> stacks;
  std::vector<int64_t> layers;
  void describe(Fields& fields) override;
};

/// A model of these options with these heads; its weights are set afterwards.
using MakeModel = std::function<std::shared_ptr<Model>(const Choice& options, const HeadTable& kept)>;

struct Converted {
  Choice options;  // of the new model
  std::shared_ptr<Model> model;
  /// {"parameters_before", "parameters_after", "cache_before", "cache_after" (numbers a token, all attentions),
  /// "attentions":
  /// {"dec.self.0": figures}, "largest": {figure: its largest}, "logits": {"largest_difference",
  /// "relative_difference"}}; the last on some validation examples: the largest |a - b|, and |a - b| / |a| with l2
  /// norms of all.
  nlohmann::ordered_json report;
};

/// `model`, of these options, with the attentions of the stacks and layers that `how` names (none named: all)
/// converted; the model itself stays. Throws UsageError where no attention is named, one can't be converted, or the
/// result breaks a rule.
Converted convert(Model& model, const Choice& options, const ConvertOptions& how, const Task& task, uint64_t seed,
                  const MakeModel& make);

}  // namespace headlab
