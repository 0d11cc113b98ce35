#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct ExpertsOptions : Described<ExpertsOptions>, Examples {
  ExpertsOptions() : Examples{"valid", 500} {}
  int64_t modulo = 0;
  void describe(Fields& fields) override;
};

/// Which experts tokens pick, and how much the token says about them.          (2210.05144, sections 3.3 and 5.4)
///   load         share of the picks that fell on each expert, ends and padding left out
///   least_load   the smallest of them
///   information  I(C; E) = sum_ce P(c,e) log2(P(c,e) / (P(c) P(e))), bits; C the class of the token, its id modulo
///   `modulo`
///                (0: the id), E one of the token's experts
/// {"attentions": {"enc.self.0": {"load": {"3": 0.25}, "least_load", "information"}}, "least_load": the smallest of
/// all, "information": the largest}. In evaluation mode. Throws UsageError where no attention routes.
class ExpertsMeasure : public Measure {
 public:
  explicit ExpertsMeasure(const ExpertsOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  ExpertsOptions options_;
};

}  // namespace headlab
