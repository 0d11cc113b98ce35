#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct CollaborativeOptions : Described<CollaborativeOptions> {
  bool content_bias = true, bias = true;
  std::string init = "normal";
  double deviation = 0.2;
  std::optional<double> divide_by;
  void describe(Fields& fields) override;
};

/// Heads that share the dimensions in which queries and keys are compared                                (2006.16362)
///
///   q_h = (x W_Q) * m_h,   k = y W_K,   s_h = (q_h k^T + y c_h) / divide_by,   v_h = y W_V^h + b_V^h
///
/// W_Q, W_K [D,K] for all heads together, where K is the attention's head_width (the paper's D~; say value_width too,
/// which is head_width otherwise), m [H,K], c [H,D]: 2 D K + H K + H D numbers beside the values. H heads of width K /
/// H written side by side are the m of ones in blocks (init "blocks"), with c_h = W_K^h b_Q^h; a key's own bias adds to
/// all scores of a query alike. A product of scores is over K: H T^2 K, so K = H d_k costs H times what separate heads
/// do.
///
/// divide_by: sqrt(K / H) where nothing is said. Queries are multiplied by sqrt(K) / divide_by, since the score
/// dot_product divides by sqrt(K). Starts as: W Xavier-uniform, m ~ N(0, deviation^2), ones in blocks or ones (then
/// heads begin with the same scores), c = 0, b = 0.
///
/// Positions that turn queries and keys turn the shared dimensions: q_h R(i - j) k^T still speaks of distance alone,
/// with the same angles for all heads. c_h sees no position. A cache keeps one key, each head's value and y c_h: K + H
/// K_v + H numbers a token. x_BTD -> q_BHTK; memory_BSD -> k_B1SK, v_BHSK, bias_BHS1, read as k_BHSK (a view), v_BHSK.
/// A removed head takes m_h, c_h and its values with it.
class Collaborative : public Project {
 public:
  Collaborative(const CollaborativeOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  bool reads_stored() const override { return true; }
  std::vector<Tensor> read(const std::vector<Tensor>& stored) override;
  Tensor bias(const std::vector<Tensor>& stored) override;
  bool learns_bias() const override;
  std::optional<int64_t> cache_numbers() const override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  CollaborativeOptions options_;
  Shape shape_;
  double divide_by_;
  Tensor query_weight, key_weight;  // [K,D], [K,D_memory]
  Tensor mix;                       // m [H,K]
  Tensor content;                   // c [H,D_memory]; undefined: none
  Tensor value_weight, value_bias;  // [H K_v, D_memory], [H K_v]
};

/// What keeps these options from heads of a width K; empty: nothing.
std::string collaborative_problem(const CollaborativeOptions& options, int64_t heads, int64_t head_width);

void collaborative_rule(const CollaborativeOptions& options, const AttentionAround& around);

}  // namespace headlab
