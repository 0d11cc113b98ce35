#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct StandardProjectOptions : Described<StandardProjectOptions> {
  bool bias = true;
  void describe(Fields& fields) override { fields.add("bias", bias, "add a learned bias to q, k and v"); }
};

struct GroupedProjectOptions : Described<GroupedProjectOptions> {
  int64_t groups = 1;
  bool bias = true;
  void describe(Fields& fields) override {
    fields.add("groups", groups, "key/value groups, each shared by heads / groups query heads").at_least(1);
    fields.add("bias", bias, "add a learned bias to q, k and v");
  }
};

/// q_h = x W_Q^h + b_Q^h;  k_g, v_g likewise from the memory        (1706.03762, section 3.2.2)
/// One matrix for a self-attention (query rows, key rows, value rows), two for a cross-attention.
/// x_BTD -> q_BHTK; memory_BSD -> k_BGSK, v_BGSK, values of the width K_v.
class StandardProject : public Project {
 public:
  StandardProject(const StandardProjectOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  std::vector<Tensor> all(const Tensor& x_BTD, const HeadPlan& plan) override;
  /// For groups that equally many heads read, one after another.
  std::vector<Tensor> of_kept(const Tensor& x_BGnD, const std::vector<int64_t>& groups) override;
  bool absorb(const std::vector<Tensor>& maps_qkv) override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 protected:
  StandardProject(int64_t groups, bool bias, Shape shape);

 private:
  int64_t key_rows() const { return shape_->G() * shape_->head_width; }
  int64_t value_rows() const { return shape_->G() * shape_->value_width; }
  std::vector<Tensor> split_memory(const Tensor& both) const;
  Shape shape_;
  Tensor weight, bias;                                          // self: [HK + GK + GK_v, D]
  Tensor query_weight, query_bias, memory_weight, memory_bias;  // cross: [HK, D] and [GK + GK_v, D_memory]
};

/// Grouped queries: heads h with equal floor(h G / H) share one key/value group          (2305.13245)
class GroupedProject : public StandardProject {
 public:
  GroupedProject(const GroupedProjectOptions& options, Shape shape)
      : StandardProject(options.groups, options.bias, std::move(shape)) {}
};

void grouped_rule(const GroupedProjectOptions& options, const AttentionAround& around);

}  // namespace headlab
