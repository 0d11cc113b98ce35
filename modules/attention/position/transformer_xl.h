#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct TransformerXlOptions : Described<TransformerXlOptions> {
  bool biases = true;
  void describe(Fields& fields) override {
    fields.add("biases", biases, "learn u and v, what each head looks for whatever the query is; false: u = v = 0");
  }
};

/// Relative positions: a score knows the distance of query and key by a learned product          (1901.02860,
/// section 3.3)
///   s_ij = ((q_i + u_h) . k_j + (q_i + v_h) . W^h R_{i-j}) / sqrt(K)
///   R_d = [sin(d w_0) ... sin(d w_{D/2-1}) cos(d w_0) ... cos(d w_{D/2-1})],  w_n = 10000^(-2n/D)
/// W^h [K,D], u_h, v_h [K] of each head; u and v start at 0. Distances may be negative, where attention is not causal.
/// The first part is query(), the second bias(): with a^h_i = (W^h)^T (q_i + v_h) and the sine and cosine of a
/// difference,
///   a . R_{i-j} = sum_n (a^s_n sin(i w_n) + a^c_n cos(i w_n)) cos(j w_n) + (a^c_n sin(i w_n) - a^s_n cos(i w_n)) sin(j
///   w_n)
/// which is a product of T rows with S rows of width D, for positions of any kind.
/// q_BHTK, q_pos [T] or [B,T], k_pos [S] or [B,S] -> bias [B,H,T,S]. Goes with the score dot_product and its own
/// factor. It learns, so that LibTorch's fused kernel computes evaluation alone. Throws ShapeError where
/// transformer_xl_problem() finds one.
class TransformerXl : public Position, public Initialised {
 public:
  TransformerXl(const TransformerXlOptions& options, Shape shape);
  Tensor query(Tensor q_BHTK, const Tensor& positions) override;
  bool has_bias() const override { return true; }
  Tensor bias(const Tensor& q_BHTK, const Tensor& q_pos, const Tensor& k_pos) override;
  bool learns_bias() const override { return at::GradMode::is_enabled(); }
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  using Position::to;

 private:
  Shape shape_;
  Tensor weight;                       // W, [H,K,D]
  Tensor content_bias, position_bias;  // u, v, [H,K]; undefined: 0
  Tensor frequency;                    // w, [D/2], radians a position
};

/// Why an attention of width D can't have such positions; empty: it can.
std::string transformer_xl_problem(int64_t D);

void transformer_xl_rule(const TransformerXlOptions& options, const AttentionAround& around);

}  // namespace headlab
