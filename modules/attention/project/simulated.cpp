#include "modules/attention/project/simulated.h"

#include <algorithm>
#include <numeric>

#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Heads as channels, the numbers of a head as length: x_BCTd, weight [H,C,k] -> [B,H,T,d].
Tensor convolve_heads(const Tensor& x_BCTd, const Tensor& weight, const Tensor& bias) {
  const auto d = x_BCTd.size(3), around = weight.size(2) / 2;
  if (!relevance::flows())
    return torch::conv2d(x_BCTd, weight.unsqueeze(2), bias, /*stride=*/1, at::IntArrayRef{0, around});
  // Number by number of the length: what lies beyond its ends is no input, and has no share of the bias.
  std::vector<Tensor> y_BTH;
  for (int64_t i = 0; i < d; ++i) {
    const auto first = std::max<int64_t>(i - around, 0), count = std::min(i + around + 1, d) - first;
    y_BTH.push_back(relevance::linear(x_BCTd.narrow(3, first, count).transpose(1, 2).flatten(2),
                                      weight.narrow(2, first - i + around, count).flatten(1), bias));
  }
  return torch::stack(y_BTH, -1).transpose(1, 2);
}

Tensor rectified(const Tensor& x) { return relevance::through(x, torch::relu(x)); }

}  // namespace

void SimulatedOptions::describe(Fields& fields) {
  fields.add("components", components, "heads that are projected; each has the width of values").at_least(1);
  fields.add("kernel", kernel, "numbers of a head that one number of a simulated head is made of; odd").at_least(1);
  fields.add("bias", bias, "add a learned bias to the components' q, k and v");
  fields
      .add("cache", cache,
           "what a cache keeps: the components (raw), which costs less memory and more time, or the simulated heads")
      .one_of({"raw", "simulated"});
}

void SimulatedOptions::rules(Problems& problems) const {
  if (kernel % 2 == 0)
    problems.add("kernel", "expected an odd number, so that a head keeps its width, got " + std::to_string(kernel) +
                               "; nearest: " + std::to_string(kernel - 1) + ", " + std::to_string(kernel + 1));
}

HeadSimulation::HeadSimulation(int64_t components, int64_t component_width, int64_t heads,
                               const std::vector<int64_t>& units, int64_t kernel, std::optional<int64_t> width)
    : component_width_(component_width) {
  const auto add = [&](Tensor& weight, Tensor& bias, const std::string& name, std::vector<int64_t> shape) {
    weight = register_parameter(name, torch::empty(shape));
    bias = register_parameter(name + "_bias", torch::zeros({shape[0]}));
  };
  add(expand, expand_bias, "expand", {heads, components, kernel});
  add(refine, refine_bias, "refine", {static_cast<int64_t>(units.size()), heads, kernel});
  if (!width) return;
  add(widen, widen_bias, "widen", {*width, component_width});
  add(deepen, deepen_bias, "deepen", {*width, *width});
}

void HeadSimulation::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto heads = expand.size(0), kernel = expand.size(2);
  xavier_uniform(expand, expand.size(1) * kernel, heads * kernel, generator("expand"));
  xavier_uniform(refine, heads * kernel, heads * kernel, generator("refine"));
  if (widen.defined()) {
    xavier_uniform(widen, widen.size(1), widen.size(0), generator("widen"));
    xavier_uniform(deepen, deepen.size(1), deepen.size(0), generator("deepen"));
  }
  for (auto& item : named_parameters())
    if (item.value().dim() == 1) item.value().zero_();
}

Tensor HeadSimulation::forward(const Tensor& x_BCTd, const std::vector<int64_t>& units) const {
  const auto all = convolve_heads(x_BCTd, expand, expand_bias);
  auto y = relevance::sum(pick(all, 1, units), convolve_heads(rectified(all), refine, refine_bias));
  if (!widen.defined()) return y;
  y = relevance::linear(y, widen, widen_bias);
  return relevance::sum(y, relevance::linear(rectified(y), deepen, deepen_bias));
}

void HeadSimulation::axes(HeadAxes axes, Unit unit) const {
  for (const auto* name : {"refine", "refine_bias"}) {
    if (unit == Unit::head) axes.head(name, 0, 1);
    if (unit == Unit::group) axes.group(name, 0, 1);
  }
}

int64_t HeadSimulation::flops(int64_t T) const {
  const auto of_width = widen.defined() ? widen.numel() + deepen.numel() : 0;
  return 2 * T * (component_width_ * (expand.numel() + refine.numel()) + refine.size(0) * of_width);
}

Simulated::Simulated(const SimulatedOptions& options, Shape shape)
    : raw_(options.cache == "raw"), shape_(std::move(shape)) {
  if (options.kernel % 2 == 0)
    throw ShapeError("project.kernel: expected an odd number, got " + std::to_string(options.kernel));
  set_groups(*shape_, shape_->original_heads);
  of_components_ = std::make_shared<AttentionShape>(*shape_);
  of_components_->head_width = shape_->value_width;
  of_components_->original_heads = options.components;
  of_components_->heads.resize(options.components);
  std::iota(of_components_->heads.begin(), of_components_->heads.end(), 0);
  StandardProjectOptions plain;
  plain.bias = options.bias;
  components = register_module("components", std::make_shared<StandardProject>(plain, of_components_));
  const auto heads = [&](const std::string& name, const std::vector<int64_t>& units, std::optional<int64_t> width) {
    return register_module(
        name, std::make_shared<HeadSimulation>(options.components, shape_->value_width, shape_->original_heads, units,
                                               options.kernel, width));
  };
  query_heads = heads("query_heads", shape_->heads, shape_->head_width);
  key_heads = heads("key_heads", shape_->groups, shape_->head_width);
  value_heads = heads("value_heads", shape_->groups, std::nullopt);
}

Tensor Simulated::query(const Tensor& x_BTD, const HeadPlan& plan) {
  return query_heads->forward(components->query(x_BTD, plan), shape_->heads);
}

std::vector<Tensor> Simulated::simulated(const std::vector<Tensor>& kv) const {
  return {key_heads->forward(kv[0], shape_->groups), value_heads->forward(kv[1], shape_->groups)};
}

std::vector<Tensor> Simulated::remember(const Tensor& memory_BSD) {
  auto kv = components->remember(memory_BSD);
  return raw_ ? kv : simulated(kv);
}

std::vector<Tensor> Simulated::all(const Tensor& x_BTD, const HeadPlan& plan) {
  const auto qkv = components->all(x_BTD, plan);
  const std::vector<Tensor> kv{qkv[1], qkv[2]}, stored = raw_ ? kv : simulated(kv);
  return {query_heads->forward(qkv[0], shape_->heads), stored[0], stored[1]};
}

std::vector<Tensor> Simulated::read(const std::vector<Tensor>& stored) {
  return raw_ ? simulated(stored) : Project::read(stored);
}

std::optional<int64_t> Simulated::cache_numbers() const {
  if (!raw_) return std::nullopt;
  return 2 * of_components_->G() * of_components_->value_width;
}

void Simulated::axes(HeadAxes axes) const {
  query_heads->axes(axes.under("query_heads."), Unit::head);
  key_heads->axes(axes.under("key_heads."), Unit::group);
  value_heads->axes(axes.under("value_heads."), Unit::group);
}

int64_t Simulated::flops(int64_t T, int64_t S, int64_t) const {
  return components->flops(T, S, of_components_->H()) + query_heads->flops(T) + key_heads->flops(S) +
         value_heads->flops(S);
}

}  // namespace headlab
