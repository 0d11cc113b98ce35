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
/// x_BTD -> q_BHTK; memory_BSD -> k_BGSK, v_BGSK.
class StandardProject : public Project {
 public:
  StandardProject(const StandardProjectOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  std::vector<Tensor> all(const Tensor& x_BTD, const HeadPlan& plan) override;
  void axes(HeadAxes axes) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 protected:
  StandardProject(int64_t groups, bool bias, Shape shape);

 private:
  Tensor split(const Tensor& flat) const;  // [B,T,n*K] -> [B,n,T,K]
  Shape shape_;
  Tensor weight, bias;                                           // self: [(H+2G)K, D]
  Tensor query_weight, query_bias, memory_weight, memory_bias;   // cross: [HK, D] and [2GK, D_memory]
};

/// Grouped queries: heads h with equal floor(h G / H) share one key/value group          (2305.13245)
class GroupedProject : public StandardProject {
 public:
  GroupedProject(const GroupedProjectOptions& options, Shape shape)
      : StandardProject(options.groups, options.bias, std::move(shape)) {}
};

}  // namespace headlab
