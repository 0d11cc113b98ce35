#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct RolesOptions : Described<RolesOptions>, Examples {
  RolesOptions() : Examples{"valid", 500} {}
  std::vector<std::string> relations{"nsubj", "obj", "amod", "advmod"};
  double positional = 0.9, syntactic = 0.1, rare = 0.5;
  void describe(Fields& fields) override;
};

/// What each head looks at: where its largest weight lies, token by token.          (1905.09418, section 5)
///
///   positional   at one offset from the token, for at least `positional` of the tokens (self-attention)
///   syntactic    from a word's first token at any token of its head, or from the head at it, for one of `relations`:
///   more often
///                by `syntactic` than the best fixed offset between words would be right (encoder; where the task knows
///                trees)
///   rare         at the token of the text that is rarest in the training data, for at least `rare` of the tokens
///   (encoder and
///                cross-attention; ties count)
///
/// Padding is left out, and ends of text as queries. A head's role is the first of these that it has, or "".
/// {"heads": {"enc.self.0.1": {"role", "offset", "offset_share", "rare_share", "relation", "relation_accuracy",
/// "relation_by_offset"}}, "positional", "syntactic", "rare": numbers of heads, "tokens"}
/// In evaluation mode. Throws UsageError where tokens are routed to heads.
class RolesMeasure : public Measure {
 public:
  explicit RolesMeasure(const RolesOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  RolesOptions options_;
};

}  // namespace headlab
