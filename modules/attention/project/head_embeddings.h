#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct HeadEmbeddingsOptions : Described<HeadEmbeddingsOptions> {
  std::string op = "mul";
  double deviation = 0.02;
  bool bias = false;
  void describe(Fields& fields) override;
};

/// One query, key and value for all heads, and for each head three vectors that make them its own          (2310.07911)
///   add   q_h = x W_Q + e^q_h          k_h = x W_K + e^k_h          v_h = x W_V + e^v_h
///   mul   q_h = x W_Q * (1 + e^q_h)    k_h = x W_K * (1 + e^k_h)    v_h = x W_V * (1 + e^v_h)
/// W_Q, W_K [D,K], W_V [D,K_v] are those of a single head; e ~ N(0, deviation^2). With D = H K and K_v = K that is 3 H
/// K^2 + 3 H K numbers (and 3 K with `bias`), where a projection for each head has 3 H^2 K^2.
///
/// A cache keeps the one key and value, K + K_v numbers a token, whatever the number of heads; vectors are added (or
/// multiplied with) and positions turned after it. Without positions that turn keys, `add` has no use for e^k: it adds
/// to a query's scores one number, which softmax takes away. x_BTD -> q_BHTK; memory_BSD -> k_B1SK, v_B1SK, read as
/// k_BHSK, v_BHSK. Removed heads take their vectors with them.
class HeadEmbeddings : public Project {
 public:
  HeadEmbeddings(const HeadEmbeddingsOptions& options, Shape shape);
  Tensor query(const Tensor& x_BTD, const HeadPlan& plan) override;
  std::vector<Tensor> remember(const Tensor& memory_BSD) override;
  bool reads_stored() const override { return true; }
  std::vector<Tensor> read(const std::vector<Tensor>& stored) override;
  std::optional<int64_t> cache_numbers() const override { return shape_->head_width + shape_->value_width; }
  /// Where vectors are added; what multiplies each number by itself does not commute with a matrix.
  bool absorb(const std::vector<Tensor>& maps_qkv) override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor of_heads(const Tensor& x_BTK, const Tensor& embedding_HK) const;
  bool adds_;
  double deviation_;
  Shape shape_;
  Tensor query_weight, query_bias;                         // [K, D], [K]
  Tensor memory_weight, memory_bias;                       // [K + K_v, D_memory], [K + K_v]
  Tensor query_embedding, key_embedding, value_embedding;  // [H,K], [G,K], [G,K_v]: a group for each head
};

}  // namespace headlab
