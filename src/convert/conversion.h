#pragma once

#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/model/model.h"
#include "src/task/task.h"

namespace headlab {

/// An attention of a trained model that is to be converted.
struct Convertible {
  Site site;
  const Attention* attention;
};

/// What a conversion may look at before anything changes.
struct ConversionWork {
  Model& model;  // as it was trained; stays so
  const Task& task;
  std::vector<Convertible> attentions;  // those that are to be converted, by site
  uint64_t seed;
};

/// Makes attentions of another kind out of trained ones: other options, and weights computed from the old ones. First
/// it looks at all, then gives the options of each, then the weights of each, by site. All that isn't an attention to
/// be converted is copied. An attention that it can't convert is a UsageError which names the site.
struct Conversion {
  virtual ~Conversion() = default;
  /// All attentions at once: for budgets that layers share, and for data.
  virtual void look(const ConversionWork&) {}
  virtual AttentionOptions options(const Attention& from, Site site) = 0;
  /// Sets what differs: `to` has these options, freshly drawn, with what has the name and shape that it had in `from`
  /// copied, and the heads of `from` where there are as many originally. Gives figures of what was lost ("error"), by
  /// name.
  virtual nlohmann::ordered_json weights(const Attention& from, Attention& to, Site site) = 0;
};

using Conversions = Registry<Conversion>;
const Conversions& conversions();
const Catalogue& conversion_catalogue();

}  // namespace headlab
