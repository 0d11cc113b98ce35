#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct KnockingOptions : Described<KnockingOptions> {
  std::string kind = "linear", init = "identity";
  std::vector<std::string> on{"v"};
  std::optional<double> deviation;
  void describe(Fields& fields) override;
  /// `on` is not empty; mlp and gate are on values alone.
  void rules(Problems& problems) const override;
};

/// Maps that all heads share, on what the projection gives, before positions and the cache:          (2510.23052)
///   linear   x~_h = x_h T                                 x: q, k or v, each with a T of its own [K,K]
///   mlp      v~_g = 2 ((v_g W_up) o sigmoid(v_g W_gate)) W_down
///   gate     v~_g = 2 v_g o sigmoid(v_g W_gate)
/// They start as no change (T, W_up, W_down identities, W_gate zeros) or at random. Linear maps are as much as a matrix
/// of each head alone could be: they change how it is learned, and can be multiplied into the projection afterwards
/// (maps()). A penalty that pulls weights to 0 (decay) pulls T away from the identity: leave them out of it by name
/// ("*_map"). q_BHTK -> q_BHTK; {k_BGSK, v_BGSK} -> the same shapes. For each of q, k, v K^2 parameters; an mlp has 3
/// K^2.
class Knocking : public Adapter {
 public:
  Knocking(const KnockingOptions& options, Shape shape);
  Tensor query(Tensor q_BHTK) override;
  std::vector<Tensor> store(std::vector<Tensor> kv) override;
  std::vector<Tensor> maps() const override;
  int64_t flops(int64_t T, int64_t S) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  KnockingOptions options_;
  Shape shape_;
  Tensor query_map, key_map, value_map;  // [K,K]; undefined: left as it is
  Tensor up_map, gate_map, down_map;     // [K_v,K_v]
};

}  // namespace headlab
