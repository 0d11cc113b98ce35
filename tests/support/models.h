#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "modules/attention/attention.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/model/encoder_decoder.h"
#include "modules/model/frame_encoder.h"
#include "modules/model/model.h"
#include "modules/model/single_stack.h"
#include "modules/tensor/init.h"
#include "modules/tensor/torch.h"

/// Small attentions and models for tests, with parameters that are nowhere 0 or equal, so that nothing hides.
namespace headlab {

/// Makes new tensors of `type` until the end of its scope: `DefaultDtype in_double(torch::kFloat64);`
class DefaultDtype {
 public:
  explicit DefaultDtype(torch::ScalarType type) : before_(torch::get_default_dtype()) {
    torch::set_default_dtype(torch::scalarTypeToTypeMeta(type));
  }
  ~DefaultDtype() { torch::set_default_dtype(before_); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  caffe2::TypeMeta before_;
};

/// N(0,1) numbers of the default type that depend on the name alone.
inline Tensor noise(at::IntArrayRef shape, const std::string& name) {
  return torch::empty(shape, torch::kFloat64).normal_(0, 1, named_generator(7, name)).to(torch::get_default_dtype());
}

/// Ids in [3, vocabulary).
inline Tensor random_ids(at::IntArrayRef shape, int64_t vocabulary, const std::string& name) {
  return torch::empty(shape, torch::kLong).random_(3, vocabulary, named_generator(7, name));
}

/// bool [B, length]: the first lengths[b] of row b are true.
inline Tensor mask_of(const std::vector<int64_t>& lengths, int64_t length) {
  return torch::arange(length).lt(torch::tensor(lengths, torch::kLong).unsqueeze(1));
}

/// Adds noise to each parameter, on top of what `initialise` draws.
inline void fill(torch::nn::Module& module, double deviation = 0.2, uint64_t seed = 3) {
  initialise(module, seed);
  torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters())
    item.value().add_(noise(item.value().sizes(), "fill/" + item.key()), deviation);
}

inline std::shared_ptr<Attention> make_attention(const AttentionOptions& options, int64_t width, bool cross = false,
                                                 const std::optional<std::vector<int64_t>>& kept = std::nullopt,
                                                 int64_t memory_width = 0) {
  auto attention = std::make_shared<Attention>(options, width, memory_width ? memory_width : width, cross, kept);
  fill(*attention);
  attention->eval();
  return attention;
}

/// One call of an attention over x (and a memory, else self-attention); the Forward is kept by the caller.
inline AttentionCall call_of(const Tensor& x_BTD, Forward& run, Visibility see = {}, const Tensor& memory_BSD = {},
                             Site site = {Stack::dec_self, 0}) {
  const auto memory = memory_BSD.defined() ? memory_BSD : x_BTD;
  return {.site = site,
          .x_BTD = x_BTD,
          .memory_BSD = memory,
          .q_pos = torch::arange(x_BTD.size(1)),
          .k_pos = torch::arange(memory.size(1)),
          .see = std::move(see),
          .state = nullptr,
          .run = run};
}

inline Visibility causal() {
  Visibility see;
  see.causal = true;
  return see;
}

constexpr int64_t small_width = 8, small_heads = 4, small_vocabulary = 11;

/// Four heads of width 2.
inline AttentionOptions small_attention() {
  AttentionOptions options;
  options.heads = small_heads;
  return options;
}

/// Width 8, 2 layers a stack, no dropout, texts of up to 16 tokens.
inline EncoderDecoderOptions small_encoder_decoder(const AttentionOptions& attention = small_attention(),
                                                   const AttentionOptions& cross = small_attention()) {
  EncoderDecoderOptions options;
  options.d_model = small_width;
  options.dropout = 0;
  options.embedding.max_length = 16;
  options.encoder.attention = options.decoder.attention = attention;
  options.decoder.cross_attention = cross;
  for (auto* ff : {&options.encoder.feed_forward, &options.decoder.feed_forward})
    ff->as<PositionWiseOptions>().width = 12;
  return options;
}

inline DecoderOnlyOptions small_decoder_only(const AttentionOptions& attention = small_attention()) {
  DecoderOnlyOptions options;
  options.d_model = small_width;
  options.dropout = 0;
  options.embedding.max_length = 16;
  options.decoder.attention = attention;
  options.decoder.feed_forward.as<PositionWiseOptions>().width = 12;
  return options;
}

inline EncoderOnlyOptions small_encoder_only(const AttentionOptions& attention = small_attention()) {
  EncoderOnlyOptions options;
  options.d_model = small_width;
  options.dropout = 0;
  options.embedding.max_length = 16;
  options.encoder.attention = attention;
  options.encoder.feed_forward.as<PositionWiseOptions>().width = 12;
  return options;
}

/// Of frames of 5 numbers, with a class of small_vocabulary at each.
inline FrameEncoderOptions small_frame_encoder(const AttentionOptions& attention = small_attention()) {
  FrameEncoderOptions options;
  options.d_model = small_width;
  options.dropout = 0;
  options.embedding.frame_width = 5;
  options.embedding.max_length = 16;
  options.encoder.attention = attention;
  options.encoder.feed_forward.as<PositionWiseOptions>().width = 12;
  return options;
}

/// "decoder_only" with these options.
template <class OptionsType>
Choice model_choice(const std::string& type, const OptionsType& options) {
  Choice choice(model_catalogue, type);
  choice.as<OptionsType>() = options;
  return choice;
}

inline ModelContext small_context(HeadTable kept = {}) {
  return {small_vocabulary, small_vocabulary, std::move(kept), small_vocabulary};
}

/// In evaluation mode.
inline std::shared_ptr<Model> make_model(const Choice& choice, const ModelContext& context = small_context()) {
  auto model = models().make(choice, context);
  fill(*model);
  model->eval();
  return model;
}

/// Three examples, sources of up to S and targets of up to T tokens, some shorter.
/// Beside the ids it tells two roles of the sources, "a" and "b", of random pairs.
inline Batch small_batch(int64_t S = 6, int64_t T = 8) {
  return {random_ids({3, S}, small_vocabulary, "source"),
          mask_of({S, S - 2, S - 1}, S),
          random_ids({3, T}, small_vocabulary, "target"),
          mask_of({T - 1, T, T - 3}, T),
          {{role_side("a"), noise({3, S, S}, "role a").gt(0)}, {role_side("b"), noise({3, S, S}, "role b").gt(0)}}};
}

inline Tensor logits_of(Model& model, const Batch& batch, Forward run = {}) { return model.logits(batch, run); }

/// "enc.self [0 2][] dec.self [1]"
inline std::string text_of(const HeadTable& table) {
  std::string text;
  for (const auto& [stack, layers] : table) {
    text += (text.empty() ? "" : " ") + stack_name(stack) + " ";
    for (const auto& heads : layers) {
      std::string list;
      for (auto head : heads) list += (list.empty() ? "" : " ") + std::to_string(head);
      text += "[" + list + "]";
    }
  }
  return text;
}

/// max |a - b|; infinite where shapes differ or anything is not finite.
inline double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const auto largest = (a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs().max().item<double>();
  return std::isfinite(largest) ? largest : std::numeric_limits<double>::infinity();
}

inline bool finite(const Tensor& x) { return torch::isfinite(x).all().item<bool>(); }

/// A tap from a function: what it returns goes on.
struct LambdaTap : Tap {
  std::function<bool(At, Site)> of;
  std::function<Tensor(At, Site, Tensor)> with;
  LambdaTap(std::function<bool(At, Site)> of, std::function<Tensor(At, Site, Tensor)> with)
      : of(std::move(of)), with(std::move(with)) {}
  bool wants(At at, Site site) const override { return of(at, site); }
  Tensor see(At at, Site site, Tensor value, const AttentionCall*) override { return with(at, site, std::move(value)); }
};

}  // namespace headlab
