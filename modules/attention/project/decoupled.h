#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct DecoupledProjectOptions : Described<DecoupledProjectOptions> {
  std::vector<int64_t> k_map, v_map;
  std::optional<int64_t> k_groups, v_groups;
  bool bias = true;
  void describe(Fields& fields) override;
  /// k_map and k_groups exclude each other, as do those of values; no group of a map is without heads.
  void rules(Problems& problems) const override;
  /// For each of `heads` heads its group of keys and of values.
  std::vector<int64_t> keys_of(int64_t heads) const;
  std::vector<int64_t> values_of(int64_t heads) const;
};

/// What is wrong with these options for so many heads: {field, message}; a rule that the attention checks.
std::vector<Problems::Problem> decoupled_problems(const DecoupledProjectOptions& options, int64_t heads);

/// Heads share keys in n_k groups and values in n_v groups, each head choosing both by itself:          (2406.06567)
///   q_h = x W_Q^h,  k = y W_K^{k_map(h)},  v = y W_V^{v_map(h)}, with biases or without
/// A cache keeps K n_k + K_v n_v numbers a token. Heads that read the same pair share one group of the shape, so that
/// equal maps in order are grouped queries, kernel included. Where a key or value stands in several pairs, it is
/// written to each after the cache, and positions act then. Removing heads removes the keys and the values that no head
/// reads any more. x_BTD -> q_BHTK; memory_BSD -> stored k [B,n_k,S,K], v [B,n_v,S,K_v] -> k_BGSK, v_BGSK.
class DecoupledProject : public Project {
 public:
  /// Throws ShapeError for maps of another number of heads.
  DecoupledProject(const DecoupledProjectOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  bool reads_stored() const override;
  std::vector<Tensor> read(const std::vector<Tensor>& stored) override;
  std::optional<int64_t> cache_numbers() const override { return key_rows() + value_rows(); }
  bool absorb(const std::vector<Tensor>& maps_qkv) override;
  void axes(HeadAxes axes) const override;
  void keep(const std::vector<int64_t>& positions) override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  int64_t key_rows() const { return key_weight.size(0); }
  int64_t value_rows() const { return value_weight.size(0); }
  Shape shape_;
  std::vector<int64_t> key_of_,
      value_of_;  // for each group (position) of the shape: its keys and values among those that are there
  Tensor query_weight, key_weight, value_weight;  // [HK, D], [n_k K, D_memory], [n_v K_v, D_memory]
  Tensor query_bias, key_bias, value_bias;
};

void decoupled_rule(const DecoupledProjectOptions& options, const AttentionAround& around);

}  // namespace headlab
