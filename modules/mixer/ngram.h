#pragma once

#include "modules/attention/mix/concatenate.h"
#include "modules/mixer/mixer.h"
#include "modules/tensor/init.h"

namespace headlab {

/// What n-gram heads are like, however many there are.
struct NgramStyle {
  int64_t n = 5;
  std::string activation = "none";
  double dropout = 0.0;
  bool bias = true;
  void describe_style(Fields& fields);
};

struct NgramOptions : Described<NgramOptions>, NgramStyle {
  int64_t heads = 8;
  void describe(Fields& fields) override;
};

/// A multi-head neural n-gram          (2207.13354)
/// Each token sees its neighbours through one matrix a head, without queries and keys.
///   z_h,t = act(W_h [x_h,t-N+1; ...; x_h,t] + b_h)       y_t = W_O dropout([z_1,t; ...; z_H,t]) + b_O
/// x_h: the h-th of H chunks of x, K = D / H wide. A causal one reads the N last frames; one that sees both sides N - 1
/// more after the token. Frames before the text, after it, of padding, and those that a call hides (segments do) are
/// zeros.
/// W_h: [K, N K] or [K, (2N-1) K], Glorot-uniform by itself; W_O: [D, D]. Both with biases of zeros at first (`bias`).
///
/// A head that is removed leaves its chunk of x unread: a head's number says which chunk it reads.
/// A cache is the last N - 1 frames of those chunks, [B,H,N-1,K], however long the text (so for each token it keeps
/// nothing: cache_numbers() is 0). There are no queries, keys, scores and weights: taps of those see nothing here.
/// x_BTD -> y_BTD. Throws ShapeError where heads do not divide the width, or x has another one.
class Ngram : public Mixer, public Initialised {
 public:
  /// `kept`: original numbers of the heads to make; nullopt: all. `output_bias`: whether there is a b_O, where the
  /// options say biases.
  Ngram(const NgramOptions& options, int64_t width, bool causal,
        const std::optional<std::vector<int64_t>>& kept = std::nullopt, bool output_bias = true);

  Tensor forward(const AttentionCall& call) override;
  /// The steps of forward() between its taps, for what has other heads beside these. z_BHTK of what the call says is x:
  Tensor heads_of(const AttentionCall& call);
  /// z times the pass's factor of each head, with dropout;
  Tensor scaled(const Tensor& z_BHTK, const AttentionCall& call);
  /// and what makes y of that.
  Concatenate& output() { return *mix; }
  const std::vector<int64_t>& heads() const override { return shape_->heads; }
  int64_t original_heads() const override { return shape_->original_heads; }
  void keep(const std::vector<int64_t>& heads) override;
  HeadAxes axes() const override;
  int64_t flops(int64_t T, int64_t S, bool causal) const override;
  int64_t cache_numbers() const override { return 0; }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  void check(const AttentionCall& call) const;
  Tensor framed(const AttentionCall& call) const;
  Tensor windows(const Tensor& framed, Tensor allowed_BTS) const;
  Tensor product(const Tensor& windows_BTHI) const;
  NgramOptions options_;
  bool causal_;
  Shape shape_;
  int64_t frames_;      // of a window
  Tensor weight, bias;  // [H, K, frames K], [H, K]
  std::shared_ptr<Concatenate> mix{nullptr};
};

}  // namespace headlab
