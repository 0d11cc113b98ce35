#include "modules/attention/gate/heads_by_length.h"

#include <algorithm>

#include "modules/attention/rules.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void HeadsByLengthOptions::describe(Fields& fields) {
  describe_bins(fields);
  fields.add("rescale", rescale, "multiply the heads of a text by heads / its heads");
}

std::string heads_by_length_problem(const HeadsByLengthOptions& options, int64_t heads) {
  for (const auto some : options.heads)
    if (some > heads)
      return "expected at most the attention's heads (" + std::to_string(heads) + "), got " + std::to_string(some);
  return "";
}

HeadsByLength::HeadsByLength(const HeadsByLengthOptions& options, Shape shape) : options_(options) {
  if (shape->cross)
    throw ShapeError("gates.heads_by_length: expected a self-attention, which knows the length of the text that asks");
  if (const auto problem = heads_by_length_problem(options, shape->original_heads); !problem.empty())
    throw ShapeError("gates.heads_by_length.heads: " + problem);
  std::vector<Tensor> rows;
  for (const auto some : options.heads) {
    std::vector<double> of_heads;
    for (const auto head : shape->heads)
      of_heads.push_back(head >= some      ? 0.0
                         : options.rescale ? static_cast<double>(shape->original_heads) / static_cast<double>(some)
                                           : 1.0);
    rows.push_back(torch::tensor(of_heads, torch::kFloat64));
  }
  factor = register_buffer("factor", torch::stack(rows).to(torch::get_default_dtype()));
}

Tensor HeadsByLength::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall& call) {
  const auto of_texts = factor.index_select(0, options_.bins_of(call)).to(z_BHTK.scalar_type());
  return relevance::through(z_BHTK, z_BHTK * of_texts.unsqueeze(-1).unsqueeze(-1));
}

void heads_by_length_rule(const HeadsByLengthOptions& options, const AttentionAround& around) {
  const auto problem = heads_by_length_problem(options, around.options.heads);
  if (!problem.empty()) around.problem("heads", problem);
}

}  // namespace headlab
