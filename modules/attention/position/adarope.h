#pragma once

#include "modules/attention/slots.h"
#include "modules/tensor/tied.h"

namespace headlab {

struct AdaRopeOptions : Described<AdaRopeOptions> {
  double base = 10000;
  std::string learn = "frequencies", share = "kv_head";
  bool length_scale = true;
  std::optional<int64_t> train_length;
  double growth = 0;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  /// Whether all heads of an attention turn alike.
  bool one_table() const { return share == "layer" || share == "model"; }
};

/// Rotary positions whose frequencies, and factors of the scores, each head learns          (2607.19363)
///   pair i of head h turns by p exp(lambda_hi) at position p;   lambda_hi starts at -(2i/K) ln base, where it is RoPE
///   the score of a query at position p is multiplied by c_h (1 + a_h max(0, ln((p + 1) / L)))^2
/// c starts at 1, a at `growth`, L is `train_length`; a = 0.1 is the temperature of YaRN (2309.00071, section 3.4). The
/// factor depends on the query's place alone, so that tokens from a cache get what the whole text would give them.
/// `learn` base: one number beta a table, lambda_i = -(2i/K) beta, which starts at ln base. The form of the factor is
/// our reading. `share`: whose table it is. A cached key turns in one way only, so that all heads that read it share
/// its table (kv_head, one a key/value group); head says the same where each head has keys of its own, and is refused
/// elsewhere; layer: one for all heads of an attention; model: one for all attentions of the model, in encoder and
/// decoder, that say so, with heads of one width and the same `learn` and `base`: one tensor, under a name in each of
/// them (tied.h), whose gradient is the sum of theirs. An attention by itself has a table of its own; factors are
/// always a head's. x_BHTK (H heads, or G groups of keys), positions [T], [B,T] or [B,H,T] -> x_BHTK, in the type of x;
/// frequencies and angles are never of less than 32 bits. Throws ShapeError in a cross-attention and where
/// adarope_problem() finds one.
class AdaRope : public Position, public Initialised, public Tied {
 public:
  AdaRope(const AdaRopeOptions& options, Shape shape);
  Tensor rotate(Tensor x_BGTK, const Tensor& positions) override;
  Tensor query(Tensor q_BHTK, const Tensor& positions) override;
  void axes(HeadAxes axes) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  using Position::to;
  bool tie(const Tied& first) override;

  /// exp(lambda) of each head, radians a position: [H,K/2].
  Tensor frequencies() const;
  /// c_h and a_h, [H]; undefined: 1 and 0.
  const Tensor& score_factor() const { return factor; }
  const Tensor& score_growth() const { return growth; }

 private:
  Tensor log_frequencies() const;          // of each table, [G,K/2] or [1,K/2]
  Tensor of_heads(const Tensor& x) const;  // [G,...] or [1,...] -> [H,...] or [1,...]
  Tensor turn(const Tensor& x, const Tensor& positions, const Tensor& log_frequency) const;
  AdaRopeOptions options_;
  Shape shape_;
  Tensor log_frequency;       // lambda, a parameter, or a buffer where it does not learn; undefined for `learn` base
  Tensor log_base, exponent;  // beta, [G,1] or [1,1], and -2i/K, [K/2]
  Tensor factor, growth;      // c, a, [H]
};

/// Why heads of width K can't have such positions; empty: they can. `shared_keys`: heads read keys in groups.
std::string adarope_problem(const AdaRopeOptions& options, int64_t K, bool shared_keys);

void adarope_rule(const AdaRopeOptions& options, const AttentionAround& around);

}  // namespace headlab
