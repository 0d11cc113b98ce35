#pragma once

#include <optional>

#include "modules/attention/mix/concatenate.h"
#include "modules/mixer/mixer.h"
#include "modules/recurrent/energy.h"
#include "modules/recurrent/lstm.h"

namespace headlab {

/// What a recurrent decoder is made for. kept: original numbers of the heads to make; nullopt: all.
struct DecoderPlace {
  int64_t width = 0;  // D, of the memory, of symbols and of each LSTM
  int64_t vocabulary = 0;
  Choices heads;  // an energy each
  double sharpen = 1, dropout = 0;
  std::optional<std::vector<int64_t>> kept = std::nullopt;
};

/// LSTMs that write symbol by symbol, with heads that look at a memory          (1804.08050)
///   a_l^n = softmax(sharpen * e^n(h, q_{l-1}^n, a_{l-1}^n, sum of a^n)),   r_l^n = sum_s a_ls^n h_s
/// An entry of the slot `merge` says where heads come together; x are symbols that are read, c_{l-1} of step l.
///
/// As a mixer its heads are those of a cross-attention: x_BTD, memory_BSD -> y_BTE, of which logits() makes logits. It
/// goes through x step by step, so that taps see q [B,N,1,D], scores and weights [B,N,1,S] of one step at a time, and
/// `call` of that step. A weight that a tap replaced is what later steps find as theirs. What z, o and y are, each
/// entry says: always y = sum of o and a bias, o = z_n W^n, and a scale multiplies z. So a scale of 0, a z of zeros and
/// a removed head are the same. Removal takes all that is a head's own: its energy, its columns of the matrix that
/// joins heads, its LSTM.
///
/// A cache (State::stored) is the memory, then keys, last weights and sums of weights of each head, then q and then c
/// of each LSTM; [B,...] each. A filled one needs no memory.
class RecurrentDecoder : public Mixer {
 public:
  /// The matrix that joins heads is `joint_width` high, and called `name`.
  RecurrentDecoder(const DecoderPlace& place, const std::string& name, int64_t joint_width, bool bias);

  Tensor forward(const AttentionCall& call) override;
  virtual Tensor logits(const Tensor& y_BTE) = 0;
  /// A cache before the first step.
  State start(const AttentionCall& call);
  const std::vector<int64_t>& heads() const override { return shape_->heads; }
  int64_t original_heads() const override { return shape_->original_heads; }
  void keep(const std::vector<int64_t>& heads) override;
  HeadAxes axes() const override;
  int64_t flops(int64_t T, int64_t S, bool causal) const override;
  int64_t cache_numbers() const override;

 protected:
  /// What goes on from step to step.
  struct Now {
    Tensor h_BSD;                // the memory
    std::vector<Tensor> keys;    // of each head
    std::vector<Looked> looked;  // of each head
    std::vector<Tensor> q, c;    // of each LSTM
    Tensor scale;                // of heads, [N] or [B,N]; undefined: none
  };
  std::shared_ptr<LstmCell> add_lstm(const std::string& name);
  /// r_l^n, [B,N,D], of at least one head. It notes where they looked.
  Tensor look(Now& now, const AttentionCall& call);
  /// Reads c_BD and moves `now` on. What it returns, stacked as [B,T,...], goes to said().
  virtual Tensor step(const Tensor& c_BD, Now& now, const AttentionCall& call) = 0;
  virtual Tensor said(const Tensor& steps, const Now& now, const AttentionCall& call) = 0;
  /// Which LSTM asks for the head at this position.
  virtual std::size_t asks(std::size_t position) const = 0;
  virtual void drop(std::size_t position) = 0;
  /// Of one step beside that of heads, LSTMs and the matrix that joins heads.
  virtual int64_t flops_of_step() const { return 0; }

  /// y_BTE of heads' z_BNTD, which taps see, a scale multiplies and `dropout` makes thinner; of no heads the bias.
  Tensor joined(Tensor z_BNTD, const Now& now, double dropout, const AttentionCall& call);
  bool has_heads() const { return !energies_.empty(); }

  DecoderPlace place_;
  Shape shape_;  // the heads that are there
  std::vector<std::shared_ptr<Energy>> energies_;
  std::vector<std::shared_ptr<LstmCell>> lstms_;

 private:
  Now begun(const AttentionCall& call);
  Now unpacked(const State& state) const;
  static void pack(const Now& now, State& state);
  std::string joint_name_;
  std::shared_ptr<Concatenate> joint_;
};

using Merges = Registry<RecurrentDecoder, const DecoderPlace&>;
const Merges& merges();
const Catalogue& merge_catalogue();

/// MHA: heads before one decoder.   y_l = W_O [r_l^1; ...; r_l^N],   q_l = LSTM(c_{l-1}, y_l),   logits = W q_l + b
/// z is r [B,N,1,D] and o its share of y_l, [B,N,1,D], of one step at a time. forward() gives q. Without heads the LSTM
/// reads nothing.
class OneDecoder : public RecurrentDecoder {
 public:
  OneDecoder(const NoOptions&, const DecoderPlace& place);
  Tensor logits(const Tensor& q_BTD) override { return output->forward(q_BTD); }

 private:
  Tensor step(const Tensor& c_BD, Now& now, const AttentionCall& call) override;
  Tensor said(const Tensor& q_BTD, const Now& now, const AttentionCall& call) override;
  std::size_t asks(std::size_t) const override { return 0; }
  void drop(std::size_t) override {}
  int64_t flops_of_step() const override { return 2 * output->weight.numel(); }
  torch::nn::Linear output{nullptr};
};

/// MHD: each head has a decoder.   q_l^n = LSTM^n(c_{l-1}, r_l^n),   y_l = logits = sum_n W^n q_l^n + b
/// z is q [B,N,T,D], o its share of the logits, [B,N,T,V], of all steps at once: what the output sees changes nothing
/// of later steps. Masked is a head whose whole part W^n q^n is left out, as it is of a removed one. Without heads b is
/// left.
class DecoderOfEach : public RecurrentDecoder {
 public:
  DecoderOfEach(const NoOptions&, const DecoderPlace& place);
  Tensor logits(const Tensor& y_BTV) override { return y_BTV; }

 private:
  Tensor step(const Tensor& c_BD, Now& now, const AttentionCall& call) override;
  Tensor said(const Tensor& q_BTND, const Now& now, const AttentionCall& call) override;
  std::size_t asks(std::size_t position) const override { return position; }
  void drop(std::size_t position) override;
};

}  // namespace headlab
