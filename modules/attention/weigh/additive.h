#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct AdditiveOptions : Described<AdditiveOptions> {
  std::optional<int64_t> width;
  void describe(Fields& fields) override {
    fields.add("width", width, "width of the hidden layer").at_least(1).means("absent: head_width");
  }
};

/// A hidden layer compares queries and keys, with weights of its own for each head          (1409.0473, appendix A.1.2)
///   s_h(q, k) = w_h^T tanh(W_q^h q + W_k^h k + b_h),  W_q^h, W_k^h [A, K], b_h, w_h [A]
/// q_BHTK, k_BHSK -> s_BHTS. Holds [B,H,T,S,A] numbers at a time, where a dot product holds none: for short texts.
class Additive : public Score {
 public:
  Additive(const AdditiveOptions& options, Shape shape);
  Tensor score(const Tensor& q_BHTK, const Tensor& k_BHSK, const std::vector<int64_t>& heads) override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S, int64_t slots, int64_t pairs) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  int64_t head_width_, width_;                    // K, A
  Tensor query_weight, key_weight, bias, weight;  // W_q [H,A,K], W_k [H,A,K], b [H,A], w [H,A]
};

}  // namespace headlab
