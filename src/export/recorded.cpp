#include "src/export/recorded.h"

#include <torch/script.h>

#include <algorithm>
#include <sstream>

namespace headlab {

c10::List<Tensor> flat(const StackState& state) {
  c10::List<Tensor> all;
  for (const auto* states : {&state.self, &state.cross})
    for (const auto& one : *states)
      for (const auto& tensor : one.stored) all.push_back(tensor);
  return all;
}

StackState unflat(const c10::List<Tensor>& all, const StackState& like) {
  auto state = like;
  std::size_t at = 0;
  for (auto* states : {&state.self, &state.cross})
    for (auto& one : *states)
      for (auto& tensor : one.stored) tensor = all.get(at++);
  return state;
}

c10::IValue with_caches(const Tensor& logits, const StackState& state) {
  return c10::ivalue::Tuple::create({logits, flat(state)});
}

void absorb_maps(Model& model) {
  for (const auto& [site, mixer] : model.mixers()) mixer->absorb();
}

double export_tolerance(torch::Dtype type) { return type == torch::kFloat64 ? 1e-10 : 1e-5; }

double compare_outputs(const std::string& where, const Tensor& expected, const Tensor& got) {
  if (got.sizes() != expected.sizes())
    throw Error(where + ": expected logits " + shape_text(expected) + ", got " + shape_text(got) +
                "; nothing was written");
  // Logits of padding may be -infinity, in both alike.
  const auto same = got.eq(expected);
  const auto difference =
      (got.to(torch::kFloat64) - expected.to(torch::kFloat64)).masked_fill(same, 0).abs().max().item<double>();
  const auto size = std::max(1.0, expected.masked_fill(expected.isinf(), 0).abs().max().item<double>());
  const auto limit = export_tolerance(expected.scalar_type()) * size;
  if (!(difference <= limit)) {
    std::ostringstream text;
    text << where << ": expected the model's logits to " << limit << ", got a difference of " << difference;
    throw Error(text.str() + "; nothing was written");
  }
  return difference;
}

}  // namespace headlab
