#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct AlibiOptions : Described<AlibiOptions> {
  bool learned = false;
  std::string bias = "outside";
  void describe(Fields& fields) override;
};

/// Attention with linear biases: a score falls with the distance of query and key          (2108.12409, section 3)
///   outside   softmax(q k^T / sqrt(K) - m_h |i - j|)          as the paper has it
///   inside    softmax((q k^T - m_h |i - j|) / sqrt(K))        the bias is scaled with the scores
/// with a slope m_h for each original head: alibi_slopes(), fixed, or learned from these on (then of any sign).
/// q_pos [T] or [B,T], k_pos [S] or [B,S] -> bias [1,H,T,S] or [B,H,T,S].
/// A removed head takes its slope with it, the others keep theirs. Distances are never of less than 32 bits.
class Alibi : public Position, public Initialised {
 public:
  Alibi(const AlibiOptions& options, Shape shape);
  bool has_bias() const override { return true; }
  Tensor bias(const Tensor& q_BHTK, const Tensor& q_pos, const Tensor& k_pos) override;
  bool learns_bias() const override;
  void axes(HeadAxes axes) const override { axes.head("slope", 0, 1); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor start() const;  // [H], float64
  AlibiOptions options_;
  Shape shape_;
  Tensor slope;  // m, [H]; a parameter where learned, else a buffer
};

/// The slopes of the paper for H heads. For a power of two 2^(-8/H), 2^(-16/H), ..., 2^-8; otherwise those of the
/// largest power of two P below H, then every other one of those of 2P, from the first on.
std::vector<double> alibi_slopes(int64_t H);

}  // namespace headlab
