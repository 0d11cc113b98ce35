#pragma once

#include "modules/attention/slots.h"
#include "modules/tensor/updated.h"

namespace headlab {

struct FuseGroupsOptions : Described<FuseGroupsOptions> {
  std::vector<int64_t> k_map, v_map;
  int64_t steps = 200;
  double lr_lambda = 0.01;
  void describe(Fields& fields) override;
};

/// For each group of the projection the fusion group it is in: the map, or all in one.
std::vector<int64_t> fusion_groups(const std::vector<int64_t>& map, int64_t groups);

/// [G,G]: 1 where two stand in one fusion group, else 0.
Tensor same_fusion_group(const std::vector<int64_t>& map, int64_t groups);

/// x_i -> sum_j mix_ji x_j over the j that share i's fusion group; x_BGSK, mix_GG.
Tensor fused(const Tensor& x_BGSK, const Tensor& mix_GG, const Tensor& same_GG);

/// F, the mean over pairs i < j in one fusion group of |w_i - w_j|^2, w_i the column i of mix; 0 where there is no
/// pair.
Tensor fusion_loss(const Tensor& mix_GG, const Tensor& same_GG);

/// An augmented Lagrangian that holds F to a target t which falls from its first value to 0 within `steps` updates:
///   lambda_1 (F - t) + lambda_2 (F - t)^2;  after each update lambda_1 += lr (F - t), lambda_2 += lr (F - t)^2
/// state [2]: {lambda_1, lambda_2}, zeros at first. All are scalars but the state.
Tensor lagrangian(const Tensor& F, const Tensor& target, const Tensor& state);
void ascend(const Tensor& F, const Tensor& target, Tensor state, double lr);

/// Keys and values of heads on their way to being shared:          (2406.06567, the fusion stage)
///   k~_i = sum_j w_ij k_j over the heads j of i's fusion group, values likewise: head i uses the matrix sum_j w_ij W_j
/// w starts as the identity, so that nothing changes; a loss "fusion" drives the rows of each group to be equal
/// (lagrangian() with states of its own for keys and values, lambdas and target learned once an optimiser step). Where
/// they are, the conversion `decoupled` makes one head of each group, exactly. Heads are those of the projection: its
/// groups, where it has such. k_BGSK, v_BGSK -> the same shapes. G^2 parameters for keys and values each, of which only
/// those within groups count.
class FuseGroups : public Adapter, public Updated {
 public:
  /// Throws ShapeError for a map of another number of groups.
  FuseGroups(const FuseGroupsOptions& options, Shape shape);
  std::vector<Tensor> store(std::vector<Tensor> kv) override;
  void add_loss(const AttentionCall& call) override;
  void update(Site site, const std::map<std::string, Tensor>& stats) override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;
  /// F of keys and of values.
  std::pair<double, double> left() const;

 private:
  FuseGroupsOptions options_;
  Shape shape_;
  Tensor key_mix, value_mix;     // w^T: [from, to]
  Tensor key_same, value_same;   // buffers [G,G]
  Tensor lambda, first, target;  // buffers: [2,2] of keys and values, [2] F of the identity, [2] t
  Tensor steps;                  // buffer, long [1]
};

void fuse_groups_rule(const FuseGroupsOptions& options, const AttentionAround& around);

}  // namespace headlab
