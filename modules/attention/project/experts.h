#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct ExpertsProjectOptions : Described<ExpertsProjectOptions> {
  void describe(Fields&) override {}
};

/// q of expert e = x W_q^e, for the experts that the plan chose for a token and no others; one key and one value
/// projection shared by all experts.          (2210.05144, section 3)
/// x_BTD, chosen_BTk -> q_BkTK;  memory_BSD -> k_B1SK, v_B1SK. Without a plan every expert is computed: q_BHTK.
/// Needs the gate `route_experts` to choose, and the mix `experts`.
class ExpertsProject : public Project {
 public:
  ExpertsProject(const ExpertsProjectOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Shape shape_;
  Tensor query_weight;              // [E, D, K]
  Tensor key_weight, value_weight;  // [K, D_memory], [K_v, D_memory]
};

/// The product of a row with its expert's matrix, `per_row` choices a row; an expert that nobody chose is not
/// multiplied. rows [N, I], chosen [N * per_row] (long), weight [E, I, O] -> [N * per_row, O].
Tensor expert_product(const Tensor& rows, const Tensor& chosen, const Tensor& weight, int64_t per_row = 1);

/// The project and the mix of experts and the gate route_experts go together: each asks, the first that is there tells.
void experts_rule(const Options&, const AttentionAround& around);

}  // namespace headlab
