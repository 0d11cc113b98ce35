#pragma once

#include "modules/embedding/embedding.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// What a model says of a text: hidden_BTD -> logits. An output puts questions (one at each token, one for the whole
/// text, two for a span), and each question's logits are one row over the same classes.
struct Output : torch::nn::Module {
  /// All logits, in the shape of the entry. mask_BT (bool): true = a token; undefined: no padding.
  virtual Tensor forward(const Tensor& hidden_BTD, const Tensor& mask_BT) = 0;
  /// The logits of some questions, one row each: [N, C]. rows_N (long) counts the questions of the batch one example
  /// after another; undefined: all. Nothing is computed for questions that are left out.
  virtual Tensor rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) = 0;
  /// Whether the rows at each token are over the vocabulary, so that text can be generated.
  virtual bool over_vocabulary() const { return false; }
  /// Of its products over one text of T tokens, a multiply-add is 2.
  virtual int64_t flops(int64_t T) const = 0;
};

/// What an output is made for.
struct OutputContext {
  int64_t width = 0;
  int64_t classes = 0;                 // of `classes` and `tags`
  std::shared_ptr<TokenTable> tokens;  // the matrix of `language_model`, owned and registered by the model
};

using Outputs = Registry<Output, const OutputContext&>;
const Outputs& outputs();
const Catalogue& output_catalogue();

/// A question at each token, its classes the vocabulary: logits_BTV = h E^T with the model's (tied) matrix E.
/// Also of hidden [B, D] alone, as generation asks it.          (1706.03762, section 3.4)
class LanguageModelOutput : public Output {
 public:
  LanguageModelOutput(const NoOptions&, const OutputContext& context) : tokens_(context.tokens) {}
  Tensor forward(const Tensor& hidden_BTD, const Tensor& mask_BT) override;
  Tensor rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) override;
  bool over_vocabulary() const override { return true; }
  int64_t flops(int64_t T) const override { return tokens_->flops(T); }

 private:
  std::shared_ptr<TokenTable> tokens_;
};

struct ClassesOutputOptions : Described<ClassesOutputOptions> {
  std::string pooling = "mean";
  double dropout = 0.0;
  void describe(Fields& fields) override;
};

/// One question for the whole text: logits_BC = pool(h) W + b. The pool is the mean over the real tokens, the first
/// token (1810.04805, section 3) or the last real token (for causal models, which see the whole text only there).
class ClassesOutput : public Output {
 public:
  ClassesOutput(const ClassesOutputOptions& options, const OutputContext& context);
  Tensor forward(const Tensor& hidden_BTD, const Tensor& mask_BT) override;
  Tensor rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) override;
  int64_t flops(int64_t) const override { return 2 * project->weight.numel(); }

 private:
  Tensor pooled(const Tensor& hidden_BTD, const Tensor& mask_BT) const;
  ClassesOutputOptions options_;
  torch::nn::Linear project{nullptr};
};

struct TokenOutputOptions : Described<TokenOutputOptions> {
  double dropout = 0.0;
  void describe(Fields& fields) override;
};

/// A question at each token, its classes the tags: logits_BTC = h W + b.
class TagsOutput : public Output {
 public:
  TagsOutput(const TokenOutputOptions& options, const OutputContext& context);
  Tensor forward(const Tensor& hidden_BTD, const Tensor& mask_BT) override;
  Tensor rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) override;
  int64_t flops(int64_t T) const override { return 2 * T * project->weight.numel(); }

 private:
  double dropout_;
  torch::nn::Linear project{nullptr};
};

/// Two questions for the whole text, where a span starts and where it ends, the classes of both its tokens:
/// logits_BT2 = h W + b, as rows [2B, T]: row 2b is the start and row 2b+1 the end of example b; padding has logit
/// -infinity. (1810.04805, section 4.2)
class SpansOutput : public Output {
 public:
  SpansOutput(const TokenOutputOptions& options, const OutputContext& context);
  Tensor forward(const Tensor& hidden_BTD, const Tensor& mask_BT) override;
  Tensor rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) override;
  int64_t flops(int64_t T) const override { return 2 * T * project->weight.numel(); }

 private:
  double dropout_;
  torch::nn::Linear project{nullptr};
};

}  // namespace headlab
