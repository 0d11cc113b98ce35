#include "modules/embedding/embedding.h"

#include <cmath>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

const AddedPositions& added_positions() {
  static const AddedPositions registry =
      AddedPositions("added_position", "positions added to the embeddings")
          .entry<Sinusoidal, SinusoidalOptions>("sinusoidal", "sines and cosines of geometric wavelengths",
                                                "1706.03762")
          .entry<LearnedPositions, LearnedPositionOptions>("learned", "a learned vector for each position",
                                                           "1706.03762")
          .entry<NoAddedPosition, NoOptions>("none", "nothing is added (the attention may carry positions)");
  return registry;
}
const Catalogue& added_position_catalogue() { return added_positions().catalogue(); }

TokenTable::TokenTable(int64_t vocabulary, int64_t width) {
  weight = register_parameter("weight", torch::empty({vocabulary, width}));
}

void TokenTable::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto deviation = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  weight.copy_(torch::empty(weight.sizes(), torch::kFloat64).normal_(0, deviation, generator("weight")));
}

Tensor TokenTable::embed(const Tensor& ids_BT, bool scale) const {
  const auto rows = torch::embedding(weight, ids_BT);
  return scale ? rows * std::sqrt(static_cast<double>(weight.size(1))) : rows;
}

Tensor TokenTable::logits(const Tensor& h) const { return relevance::linear(h, weight); }

Sinusoidal::Sinusoidal(const SinusoidalOptions& options, int64_t width, int64_t max_length) {
  const auto pairs = (width + 1) / 2;
  const auto frequency =
      torch::pow(options.base, torch::arange(pairs, torch::kFloat64) * (-2.0 / static_cast<double>(width)));
  const auto angle = torch::arange(max_length, torch::kFloat64).unsqueeze(1) * frequency;
  const auto values = torch::stack({angle.sin(), angle.cos()}, -1).flatten(1).narrow(1, 0, width);
  table = register_buffer("table", values.to(torch::get_default_dtype()).contiguous());
}

Tensor Sinusoidal::at(const Tensor& positions) {
  const auto rows = table.index_select(0, positions.flatten());
  return positions.dim() == 1 ? rows : rows.view_as(positions.unsqueeze(-1).expand({-1, -1, table.size(1)}));
}

LearnedPositions::LearnedPositions(const LearnedPositionOptions& options, int64_t width, int64_t max_length)
    : deviation_(options.deviation.value_or(1 / std::sqrt(static_cast<double>(width)))) {
  weight = register_parameter("weight", torch::empty({max_length, width}));
}

void LearnedPositions::draw(const std::function<at::Generator(const std::string&)>& generator) {
  weight.copy_(torch::empty(weight.sizes(), torch::kFloat64).normal_(0, deviation_, generator("weight")));
}

Tensor LearnedPositions::at(const Tensor& positions) { return torch::embedding(weight, positions); }

void EmbeddingOptions::describe(Fields& fields) {
  fields.add("scale", scale, "multiply embeddings by sqrt(d_model)");
  fields.add("position", position, "positions added to the embeddings");
  fields.add("max_length", max_length, "longest text that the model takes").at_least(1).unit("tokens");
  fields.add("tie", tie, "which matrices are one: source, target and output; target and output; none")
      .one_of({"all", "target", "none"});
  fields.add("dropout", dropout, "on embeddings with their positions")
      .at_least(0)
      .below(1)
      .means("absent: model.dropout");
}

Embed::Embed(const EmbeddingOptions& options, int64_t width, double dropout, const std::string& kind)
    : scale_(options.scale), max_length_(options.max_length), dropout_(options.dropout.value_or(dropout)), kind_(kind) {
  position = register_module("position", added_positions().make(options.position, width, options.max_length));
}

Tensor Embed::forward(const TokenTable& tokens, const Tensor& ids_BT, const Tensor& positions, int64_t past) {
  if (ids_BT.dim() != 2) throw wrong_shape("embedding.ids", "[B, T]", ids_BT);
  if (past + ids_BT.size(1) > max_length_)
    throw ShapeError("embedding: expected at most " + std::to_string(max_length_) + " tokens, got " +
                     std::to_string(past + ids_BT.size(1)) + "; raise model.embedding.max_length");
  auto x = tokens.embed(ids_BT, scale_);
  const auto added = position->at(positions);
  if (added.defined()) x = x + added;
  return drop(x, dropout_, is_training(), kind_);
}

}  // namespace headlab
