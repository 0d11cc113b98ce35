#include "modules/attention/project/knocking.h"

#include <algorithm>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// x T, or x where there is no T.
Tensor mapped(const Tensor& x, const Tensor& map_KK) { return map_KK.defined() ? relevance::linear(x, map_KK.t()) : x; }

}  // namespace

void KnockingOptions::describe(Fields& fields) {
  fields.add("kind", kind, "a matrix, a gated feed-forward, or the gate alone; the last two on values alone")
      .one_of({"linear", "mlp", "gate"});
  fields.add("on", on, "what is mapped").one_of({"q", "k", "v"});
  fields.add("init", init, "as no change, or drawn").one_of({"identity", "random"});
  fields.add("deviation", deviation, "of random maps' normally distributed entries")
      .above(0)
      .means("absent: Xavier-uniform");
}

void KnockingOptions::rules(Problems& problems) const {
  if (on.empty()) problems.add("on", "expected at least one of q, k, v");
  if (kind != "linear" && on != std::vector<std::string>{"v"})
    problems.add("on", "expected [\"v\"] with kind " + kind +
                           ", which is for values; a second adapter of kind linear can map q and k");
}

Knocking::Knocking(const KnockingOptions& options, Shape shape) : options_(options), shape_(std::move(shape)) {
  const auto matrix = [&](const char* name, int64_t width) {
    return register_parameter(name, torch::empty({width, width}));
  };
  const auto has = [&](const char* what) { return std::count(options_.on.begin(), options_.on.end(), what) > 0; };
  if (options_.kind == "linear") {
    if (has("q")) query_map = matrix("query_map", shape_->head_width);
    if (has("k")) key_map = matrix("key_map", shape_->head_width);
    if (has("v")) value_map = matrix("value_map", shape_->value_width);
    return;
  }
  gate_map = matrix("gate_map", shape_->value_width);
  if (options_.kind == "gate") return;
  up_map = matrix("up_map", shape_->value_width);
  down_map = matrix("down_map", shape_->value_width);
}

void Knocking::draw(const std::function<at::Generator(const std::string&)>& generator) {
  for (auto& item : named_parameters()) {
    auto& map = item.value();
    if (options_.init == "random" && options_.deviation)  // drawn in one type, so that each type has the same numbers
      map.copy_(torch::empty(map.sizes(), torch::kFloat64).normal_(0, *options_.deviation, generator(item.key())));
    else if (options_.init == "random")
      xavier_uniform(map, map.size(1), map.size(0), generator(item.key()));
    else if (map.is_same(gate_map))
      map.zero_();
    else
      map.copy_(torch::eye(map.size(0), map.options()));
  }
}

Tensor Knocking::query(Tensor q_BHTK) { return mapped(q_BHTK, query_map); }

std::vector<Tensor> Knocking::store(std::vector<Tensor> kv) {
  kv[0] = mapped(kv[0], key_map);
  auto& v = kv[1];
  if (!gate_map.defined()) {
    v = mapped(v, value_map);
    return kv;
  }
  const auto gates = 2 * torch::sigmoid(torch::matmul(v, gate_map));
  const auto up = mapped(v, up_map);
  v = mapped(relevance::through(up, gates * up), down_map);
  return kv;
}

std::vector<Tensor> Knocking::maps() const {
  if (options_.kind != "linear") return {};
  return {query_map, key_map, value_map};
}

int64_t Knocking::flops(int64_t T, int64_t S) const {
  int64_t count = 0;
  for (const auto& item : named_parameters()) {
    const auto tokens = item.value().is_same(query_map) ? shape_->H() * T : shape_->G() * S;
    count += 2 * tokens * item.value().numel();
  }
  return count;
}

}  // namespace headlab
