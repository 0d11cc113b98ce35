#pragma once

#include "modules/embedding/embedding.h"
#include "modules/layer/stack.h"
#include "modules/tensor/autocast.h"

namespace headlab {

/// Token ids of a batch, padded on the right. Where a model has one text, it is the target.
struct Batch {
  Tensor source_BS, source_mask_BS;  // mask: bool, true = a token; undefined: no padding
  Tensor target_BT, target_mask_BT;  // what the decoder reads
  std::map<std::string, Tensor> side =
      {};  // what else the data tells of the text that is read (of the source, where there are two)
};

/// Generates one token after another.
struct Stepper {
  virtual ~Stepper() = default;
  /// Reads the ids [B,T] that follow what was read, and returns logits_BV for the next token.
  virtual Tensor step(const Tensor& ids_BT, Forward& run) = 0;
  /// Row b goes on as what row rows_B[b] was.
  virtual void reorder(const Tensor& rows_B) = 0;
  /// The most tokens that may be read in all.
  virtual int64_t max_length() const = 0;
};

/// A Transformer: ids to logits.
class Model : public torch::nn::Module {
 public:
  /// [B,T,D] before the output.
  virtual Tensor hidden(const Batch& batch, Forward& run) = 0;
  /// h[..., D] -> logits[..., V], for an output over the vocabulary.
  virtual Tensor logits_of(const Tensor& hidden, Forward& run) = 0;
  /// [B,T,V], or in the shape of another output (modules/output).
  virtual Tensor logits(const Batch& batch, Forward& run) { return logits_of(hidden(batch, run), run); }
  /// The logits of some of the batch's questions, one row each: [N, C]. rows_N (long) counts them one example after
  /// another (here: the tokens of target_BT); undefined: all.
  virtual Tensor row_logits(const Batch& batch, const Tensor& rows_N, Forward& run);

  /// Starts generating; for an encoder-decoder the batch holds the source, for a decoder it may hold nothing.
  /// Throws UsageError where the model can't generate.
  virtual std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) = 0;

  virtual std::vector<std::pair<Site, Mixer*>> mixers() const = 0;
  virtual int64_t max_length() const = 0;
  virtual int64_t target_vocabulary() const = 0;

  HeadTable heads() const;                                       // that are there
  std::map<Stack, std::vector<int64_t>> original_heads() const;  // how many each layer had, by stack
  void keep(const HeadTable& kept);                              // real removal; every head of `kept` must be there
  /// A scale of ones: [L, most heads of a layer] for each stack of the model.
  std::map<Stack, Tensor> ones() const;
  int64_t parameter_count() const;
  /// Floating-point operations of the products of matrices, a multiply-add counted as 2, of one pass over a source of S
  /// tokens (where there is one) and a target of T, logits of each target token included.
  virtual int64_t flops(int64_t S, int64_t T) const = 0;
  torch::Device device() const;
  torch::Dtype dtype() const;

  /// The type that matrix products take, where it is not that of the parameters: bfloat16, or nothing. Logits are of
  /// the parameters' type all the same. A clone has it too; an exported file does not.
  void multiply_in(std::optional<torch::Dtype> type) { products_ = type; }
  std::optional<torch::Dtype> multiplies_in() const { return products_; }
  /// In force until the guard ends. Every pass has its own; one around many passes casts the parameters once.
  Autocast autocast() const { return Autocast(products_, device()); }

 protected:
  /// Logits in the parameters' type: losses and searches sum many of them.
  Tensor widened(const Tensor& logits) const { return products_ ? logits.to(dtype()) : logits; }

 private:
  std::optional<torch::Dtype> products_;
};

/// What a model is made for.
struct ModelContext {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  HeadTable kept;       // heads to make; a stack that is absent: all
  int64_t classes = 0;  // of an output that is not over the vocabulary
};

using Models = Registry<Model, const ModelContext&>;
const Models& models();
const Catalogue& model_catalogue();

/// Fields that all models share.
struct ModelOptions {
  int64_t d_model = 256;
  double dropout = 0.1;
  std::string dropout_kind = "element";
  Choice norm{norm_catalogue, "layer_norm"};
  Choice residual{residual_catalogue, "pre"};
  EmbeddingOptions embedding;
  void describe_shared(Fields& fields) { describe_shared(fields, embedding, "token embeddings and their positions"); }
  /// With what stands in the embedding's place.
  void describe_shared(Fields& fields, Options& embedding, const std::string& help);
  LayerStyle style() const { return {d_model, dropout, norm, residual, dropout_kind}; }
};

/// 0, 1, ..., T-1 for ids_BT, from `past` on; while recording without T as a number.
Tensor positions_of(const Tensor& ids_BT, int64_t past = 0);

}  // namespace headlab
