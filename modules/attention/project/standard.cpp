#include "modules/attention/project/standard.h"

#include <torch/torch.h>

namespace headlab {
namespace F = torch::nn::functional;

StandardProject::StandardProject(const StandardProjectOptions& options, Shape shape)
    : StandardProject(shape->original_heads, options.bias, shape) {}

StandardProject::StandardProject(int64_t groups, bool with_bias, Shape shape) : shape_(std::move(shape)) {
  if (shape_->original_heads % groups != 0)
    throw ShapeError("project.groups: expected a divisor of heads (" + std::to_string(shape_->original_heads) + "), got " +
                     std::to_string(groups));
  set_groups(*shape_, groups);
  const auto q = shape_->H() * shape_->head_width, kv = 2 * shape_->G() * shape_->head_width;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    return register_parameter(name, torch::empty({rows, columns}));
  };
  const auto vector = [&](const std::string& name, int64_t rows) {
    return with_bias ? register_parameter(name, torch::zeros({rows})) : Tensor();
  };
  if (shape_->cross) {
    query_weight = matrix("query_weight", q, shape_->width);
    query_bias = vector("query_bias", q);
    memory_weight = matrix("memory_weight", kv, shape_->memory_width);
    memory_bias = vector("memory_bias", kv);
  } else {
    weight = matrix("weight", q + kv, shape_->width);
    bias = vector("bias", q + kv);
  }
}

void StandardProject::draw(const std::function<at::Generator(const std::string&)>& generator) {
  // Each head's block counts as a matrix of its own fan, as if q, k and v were separate layers of width H*K.
  const auto K = shape_->head_width;
  const auto fill = [&](Tensor matrix, const std::string& name) {
    xavier_uniform(matrix, matrix.size(1), shape_->original_heads * K, generator(name));
  };
  if (shape_->cross) {
    fill(query_weight, "query_weight");
    fill(memory_weight, "memory_weight");
  } else {
    fill(weight, "weight");
  }
  for (auto& item : named_parameters())
    if (item.value().dim() == 1) item.value().zero_();
}

Tensor StandardProject::split(const Tensor& flat) const {
  return flat.unflatten(-1, {-1, shape_->head_width}).transpose(1, 2);
}

Tensor StandardProject::query(const Tensor& x_BTD, const HeadPlan&) {
  if (shape_->cross) return split(F::linear(x_BTD, query_weight, query_bias));
  const auto rows = shape_->H() * shape_->head_width;
  return split(F::linear(x_BTD, weight.narrow(0, 0, rows), bias.defined() ? bias.narrow(0, 0, rows) : bias));
}

std::vector<Tensor> StandardProject::remember(const Tensor& memory_BSD) {
  Tensor both;
  if (shape_->cross) {
    both = F::linear(memory_BSD, memory_weight, memory_bias);
  } else {
    const auto first = shape_->H() * shape_->head_width, rows = 2 * shape_->G() * shape_->head_width;
    both = F::linear(memory_BSD, weight.narrow(0, first, rows), bias.defined() ? bias.narrow(0, first, rows) : bias);
  }
  auto halves = both.chunk(2, -1);
  return {split(halves[0]), split(halves[1])};
}

std::vector<Tensor> StandardProject::all(const Tensor& x_BTD, const HeadPlan& plan) {
  if (shape_->cross) return Project::all(x_BTD, plan);
  const auto q = shape_->H() * shape_->head_width, kv = shape_->G() * shape_->head_width;
  auto parts = F::linear(x_BTD, weight, bias).split_with_sizes({q, kv, kv}, -1);
  return {split(parts[0]), split(parts[1]), split(parts[2])};
}

void StandardProject::axes(HeadAxes axes) const {
  const auto K = shape_->head_width, H = shape_->H(), G = shape_->G();
  const auto lay = [&](const std::string& name, int64_t dim_heads, bool heads, bool groups) {
    if (heads) axes.head(name, 0, K, 0);
    if (groups) {
      axes.group(name, 0, K, dim_heads);
      axes.group(name, 0, K, dim_heads + G * K);
    }
  };
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    if (name == "weight" || name == "bias") lay(name, H * K, true, true);
    if (name == "query_weight" || name == "query_bias") lay(name, 0, true, false);
    if (name == "memory_weight" || name == "memory_bias") lay(name, 0, false, true);
  }
}

}  // namespace headlab
