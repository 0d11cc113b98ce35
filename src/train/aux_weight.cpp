#include "src/train/aux_weight.h"

#include <algorithm>

#include "modules/base/error.h"
#include "modules/base/nearest.h"

namespace headlab {

void AuxWeightOptions::describe(Fields& fields) {
  fields.add("loss", loss, "which: the name of a gate with a penalty (l0_round, hard_concrete), or balance, router_z")
      .required();
  fields.add("factor", factor, "multiplies the coefficient that the module itself has").at_least(0);
  fields.add("warmup", warmup, "steps until the whole factor, linearly from 0").at_least(0).unit("steps");
}

double AuxWeights::of(const std::string& loss, int64_t step) const {
  for (const auto& one : options_)
    if (one.loss == loss)
      return one.factor *
             (one.warmup == 0 ? 1.0 : std::min(1.0, static_cast<double>(step) / static_cast<double>(one.warmup)));
  return 1;
}

void AuxWeights::check(const std::set<std::string>& losses) const {
  for (std::size_t i = 0; i < options_.size(); ++i)
    if (!losses.count(options_[i].loss))
      throw UsageError("aux[" + std::to_string(i) + "].loss: " +
                       (losses.empty()
                            ? "the model adds no loss (a penalty of 0, or gates that are held fixed?), got " +
                                  in_quotes(options_[i].loss)
                            : unknown_name("loss", options_[i].loss, {losses.begin(), losses.end()})));
}

}  // namespace headlab
