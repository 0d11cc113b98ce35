#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct PersistentOptions : Described<PersistentOptions> {
  int64_t vectors = 256;
  void describe(Fields& fields) override {
    fields.add("vectors", vectors, "learned keys, each with its value, that each head sees beside the text's")
        .at_least(1);
  }
};

/// An all-attention layer's memory: each head has N learned pairs that stand before the context's keys and values and
/// do what a feed-forward network does (choose "feed_forward": "none").          (1907.01470, section 3.1; as in
/// 2110.03252)
///   keys [sqrt(K) m^k_h ; k_h],  values [sqrt(N) m^v_h ; v_h],  m^k_h [N,K], m^v_h [N,K_v]
///   m^k ~ U(-1/sqrt(D), 1/sqrt(D)),  m^v normal with deviation 1/sqrt(D)
/// Every query sees them whatever mask, window or padding hides; no position turns them or adds to their scores, and no
/// cache holds them. Heads that share keys and values in groups have pairs of their own: k_BGSK, v_BGSK -> k_BH(N+S)K,
/// v_BH(N+S)K. It is the last adapter: what followed it would take its vectors for the context's.
class Persistent : public Adapter {
 public:
  Persistent(const PersistentOptions& options, Shape shape);
  std::vector<Tensor> expand(std::vector<Tensor> kv) override;
  std::vector<int64_t> group_of(std::vector<int64_t> before) const override;
  int64_t ahead() const override { return vectors_; }
  void axes(HeadAxes axes) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor joined(const Tensor& own_HNK, const Tensor& context_BGSK) const;
  int64_t vectors_;  // N
  Shape shape_;
  Tensor key, value;  // m^k [H,N,K], m^v [H,N,K_v]
};

void persistent_rule(const PersistentOptions& options, const AttentionAround& around);

}  // namespace headlab
