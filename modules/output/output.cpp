#include "modules/output/output.h"

#include <limits>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

torch::nn::Linear output_layer(const OutputContext& context, int64_t classes) {
  if (classes < 1) throw ShapeError("model.output: expected at least one class, got " + std::to_string(classes));
  return torch::nn::Linear(context.width, classes);
}

// [B,T,...] -> [B*T,...], the rows asked for.
Tensor rows_at_tokens(const Tensor& hidden_BTD, const Tensor& rows_N) {
  const auto all = hidden_BTD.flatten(0, 1);
  return rows_N.defined() ? all.index_select(0, rows_N) : all;
}

Tensor answers(const torch::nn::Linear& layer, const Tensor& x) {
  return relevance::linear(x, layer->weight, layer->bias);
}

// [B,D], the sum over the tokens by their weights.
Tensor pool(const Tensor& hidden_BTD, const Tensor& weight_BT) {
  if (relevance::flows()) return relevance::weighted_sum(weight_BT.unsqueeze(1), hidden_BTD).squeeze(1);
  return (hidden_BTD * weight_BT.unsqueeze(-1)).sum(1);
}

}  // namespace

const Outputs& outputs() {
  static const Outputs registry =
      Outputs("output", "what a model says of a text")
          .entry<LanguageModelOutput, NoOptions>("language_model", "the vocabulary at each token: [B, T, V]",
                                                 "1706.03762")
          .entry<ClassesOutput, ClassesOutputOptions>("classes", "one class for the whole text: [B, C]", "1810.04805")
          .entry<TagsOutput, TokenOutputOptions>("tags", "a tag at each token: [B, T, C]", "1810.04805")
          .entry<SpansOutput, TokenOutputOptions>("spans", "where a span starts and ends: [B, T, 2]", "1810.04805");
  return registry;
}
const Catalogue& output_catalogue() { return outputs().catalogue(); }

Tensor LanguageModelOutput::forward(const Tensor& hidden_BTD, const Tensor&) { return tokens_->logits(hidden_BTD); }

Tensor LanguageModelOutput::rows(const Tensor& hidden_BTD, const Tensor&, const Tensor& rows_N) {
  return tokens_->logits(rows_at_tokens(hidden_BTD, rows_N));
}

void ClassesOutputOptions::describe(Fields& fields) {
  fields.add("pooling", pooling, "what stands for the text: the mean of its tokens, the first or the last token")
      .one_of({"mean", "first", "last"});
  fields.add("dropout", dropout, "on what stands for the text").at_least(0).below(1);
}

ClassesOutput::ClassesOutput(const ClassesOutputOptions& options, const OutputContext& context) : options_(options) {
  project = register_module("project", output_layer(context, context.classes));
}

Tensor ClassesOutput::pooled(const Tensor& hidden_BTD, const Tensor& mask_BT) const {
  if (options_.pooling == "first") return hidden_BTD.select(1, 0);
  if (!mask_BT.defined() && options_.pooling == "last") return hidden_BTD.select(1, -1);
  if (!mask_BT.defined() && !relevance::flows()) return hidden_BTD.mean(1);
  if (!mask_BT.defined())
    return pool(hidden_BTD, torch::full_like(hidden_BTD.select(2, 0), 1.0 / static_cast<double>(hidden_BTD.size(1))));
  // A weight for each token, so that no size is read: 1/n for the mean of n tokens, 1 at the last one.
  const auto real = mask_BT.to(hidden_BTD.scalar_type());
  auto weight_BT = real / real.sum(1, /*keepdim=*/true).clamp_min(1);
  if (options_.pooling == "last") {
    const auto after = real.flip(1).cumsum(1).flip(1);  // real tokens from here on
    weight_BT = real * after.eq(1).to(hidden_BTD.scalar_type());
  }
  return pool(hidden_BTD, weight_BT);
}

Tensor ClassesOutput::forward(const Tensor& hidden_BTD, const Tensor& mask_BT) {
  return answers(project, torch::dropout(pooled(hidden_BTD, mask_BT), options_.dropout, is_training()));
}

Tensor ClassesOutput::rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) {
  const auto logits = forward(hidden_BTD, mask_BT);
  return rows_N.defined() ? logits.index_select(0, rows_N) : logits;
}

void TokenOutputOptions::describe(Fields& fields) {
  fields.add("dropout", dropout, "on the hidden state of each token").at_least(0).below(1);
}

TagsOutput::TagsOutput(const TokenOutputOptions& options, const OutputContext& context) : dropout_(options.dropout) {
  project = register_module("project", output_layer(context, context.classes));
}

Tensor TagsOutput::forward(const Tensor& hidden_BTD, const Tensor&) {
  return answers(project, torch::dropout(hidden_BTD, dropout_, is_training()));
}

Tensor TagsOutput::rows(const Tensor& hidden_BTD, const Tensor&, const Tensor& rows_N) {
  return answers(project, torch::dropout(rows_at_tokens(hidden_BTD, rows_N), dropout_, is_training()));
}

SpansOutput::SpansOutput(const TokenOutputOptions& options, const OutputContext& context) : dropout_(options.dropout) {
  project = register_module("project", output_layer(context, 2));
}

Tensor SpansOutput::forward(const Tensor& hidden_BTD, const Tensor&) {
  return answers(project, torch::dropout(hidden_BTD, dropout_, is_training()));
}

Tensor SpansOutput::rows(const Tensor& hidden_BTD, const Tensor& mask_BT, const Tensor& rows_N) {
  auto logits = forward(hidden_BTD, mask_BT);
  if (mask_BT.defined())
    logits = logits.masked_fill(mask_BT.logical_not().unsqueeze(-1), -std::numeric_limits<double>::infinity());
  logits = logits.transpose(1, 2).flatten(0, 1);  // [B,T,2] -> [2B,T]
  return rows_N.defined() ? logits.index_select(0, rows_N) : logits;
}

}  // namespace headlab
