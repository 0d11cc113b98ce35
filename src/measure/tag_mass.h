#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct TagMassOptions : Described<TagMassOptions>, Examples {
  TagMassOptions() : Examples{"valid", 500} {}
  void describe(Fields& fields) override;
};

/// Where the attention weights of a head lie (1911.03898): at one offset from the token, and on words of each tag
/// (parts of speech, or names), in self-attentions of a model of the task tagging. With weights A, over all tokens t
/// that are there:
///
///   offset_mass   max_d mean_t A[t, t+d], where a place outside the text counts as 0; "offset" is that d
///   mass(c)       mean_t sum_s A[t,s] [s is the first token of a word tagged c]
///   lift(c)       mass(c) over the share of tokens that are such
///
/// {"heads": {"enc.self.0.1": {"offset", "offset_mass", "mass": {"NOUN": ...}, "lift": {...}}}, "share": {"NOUN": ...},
///  "offset_mass": mean over heads, "largest_lift": mean over heads of their largest lift, "queries"}
/// In evaluation mode. Throws UsageError for another task, and where tokens are routed to heads.
class TagMassMeasure : public Measure {
 public:
  explicit TagMassMeasure(const TagMassOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  TagMassOptions options_;
};

}  // namespace headlab
