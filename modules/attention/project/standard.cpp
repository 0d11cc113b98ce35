#include "modules/attention/project/standard.h"

#include <cmath>

#include "modules/attention/project/absorb.h"
#include "modules/attention/project/split_heads.h"
#include "modules/attention/rules.h"
#include "modules/attention/weigh/kept.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

StandardProject::StandardProject(const StandardProjectOptions& options, Shape shape)
    : StandardProject(shape->original_heads, options.bias, shape) {}

StandardProject::StandardProject(int64_t groups, bool with_bias, Shape shape) : shape_(std::move(shape)) {
  if (shape_->original_heads % groups != 0)
    throw ShapeError("project.groups: expected a divisor of heads (" + std::to_string(shape_->original_heads) +
                     "), got " + std::to_string(groups));
  set_groups(*shape_, groups);
  const auto q = shape_->H() * shape_->head_width, kv = key_rows() + value_rows();
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
  const auto H = shape_->original_heads;
  const auto fill = [&](Tensor matrix, const std::string& name) {
    const auto D = matrix.size(1), of_keys = H * shape_->head_width, of_values = H * shape_->value_width;
    xavier_uniform(matrix, D, of_keys, generator(name));
    if (of_keys == of_values || name == "query_weight") return;
    const auto ratio = std::sqrt(static_cast<double>(D + of_keys) / static_cast<double>(D + of_values));
    matrix.narrow(0, matrix.size(0) - value_rows(), value_rows()).mul_(ratio);  // the values' own fan
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

std::vector<Tensor> StandardProject::split_memory(const Tensor& both) const {
  const auto parts = both.split_with_sizes({key_rows(), value_rows()}, -1);
  return {split_heads(parts[0], shape_->head_width), split_heads(parts[1], shape_->value_width)};
}

Tensor StandardProject::query(const Tensor& x_BTD, const HeadPlan&) {
  if (shape_->cross) return split_heads(relevance::linear(x_BTD, query_weight, query_bias), shape_->head_width);
  const auto K = shape_->head_width, rows = shape_->H() * K;
  return split_heads(
      relevance::linear(x_BTD, weight.narrow(0, 0, rows), bias.defined() ? bias.narrow(0, 0, rows) : bias), K);
}

std::vector<Tensor> StandardProject::remember(const Tensor& memory_BSD) {
  if (shape_->cross) return split_memory(relevance::linear(memory_BSD, memory_weight, memory_bias));
  const auto first = shape_->H() * shape_->head_width, rows = key_rows() + value_rows();
  return split_memory(relevance::linear(memory_BSD, weight.narrow(0, first, rows),
                                        bias.defined() ? bias.narrow(0, first, rows) : bias));
}

std::vector<Tensor> StandardProject::all(const Tensor& x_BTD, const HeadPlan& plan) {
  if (shape_->cross) return Project::all(x_BTD, plan);
  const auto K = shape_->head_width;
  auto parts = relevance::linear(x_BTD, weight, bias).split_with_sizes({shape_->H() * K, key_rows(), value_rows()}, -1);
  return {split_heads(parts[0], K), split_heads(parts[1], K), split_heads(parts[2], shape_->value_width)};
}

std::vector<Tensor> StandardProject::of_kept(const Tensor& x_BGnD, const std::vector<int64_t>& groups) {
  if (shape_->cross) return {};
  const GroupPart part(groups, shape_->group_of);
  const auto P = static_cast<int64_t>(groups.size()), R = static_cast<int64_t>(part.heads.size()) / P;
  for (std::size_t i = 0; i < part.heads.size(); ++i)
    if (part.group_of[i] != static_cast<int64_t>(i) / R) return {};
  const auto K = shape_->head_width, V = shape_->value_width, H = shape_->H();
  const auto by_group =
      [&](const Tensor& all) {  // rows of queries, keys and values: [P, RK + K + K_v] and what follows
        const auto of_units = [&](int64_t first, int64_t units, int64_t width, const std::vector<int64_t>& positions) {
          return pick(all.narrow(0, first, units * width).unflatten(0, at::IntArrayRef{units, width}), 0, positions);
        };
        const auto of_queries = of_units(0, H, K, part.heads).flatten(0, 1).unflatten(0, at::IntArrayRef{P, R * K});
        return torch::cat(
            {of_queries, of_units(H * K, shape_->G(), K, groups), of_units(H * K + key_rows(), shape_->G(), V, groups)},
            1);
      };
  const auto x_GND = x_BGnD.transpose(0, 1).flatten(1, 2), w_GDO = by_group(weight).transpose(1, 2);
  const auto y_GNO =
      bias.defined() ? torch::baddbmm(by_group(bias).unsqueeze(1), x_GND, w_GDO) : torch::bmm(x_GND, w_GDO);
  const auto parts = y_GNO.unflatten(1, at::IntArrayRef{x_BGnD.size(0), x_BGnD.size(2)})
                         .transpose(0, 1)
                         .split_with_sizes({R * K, K, V}, -1);
  return {parts[0].unflatten(-1, at::IntArrayRef{R, K}).transpose(2, 3).flatten(1, 2), parts[1], parts[2]};
}

bool StandardProject::absorb(const std::vector<Tensor>& maps_qkv) {
  const auto queries = shape_->H() * shape_->head_width, keys = key_rows(), values = value_rows();
  const auto part = [](const Tensor& rows, int64_t first, int64_t count) {
    return rows.defined() ? rows.narrow(0, first, count) : rows;
  };
  for (const auto& both : {weight, bias}) {
    absorb_map(part(both, 0, queries), maps_qkv[0]);
    absorb_map(part(both, queries, keys), maps_qkv[1]);
    absorb_map(part(both, queries + keys, values), maps_qkv[2]);
  }
  for (const auto& of_queries : {query_weight, query_bias}) absorb_map(of_queries, maps_qkv[0]);
  for (const auto& of_memory : {memory_weight, memory_bias}) {
    absorb_map(part(of_memory, 0, keys), maps_qkv[1]);
    absorb_map(part(of_memory, keys, values), maps_qkv[2]);
  }
  return true;
}

void StandardProject::axes(HeadAxes axes) const {
  const auto K = shape_->head_width, H = shape_->H();
  const auto lay = [&](const std::string& name, int64_t dim_heads, bool heads, bool groups) {
    if (heads) axes.head(name, 0, K, 0);
    if (groups) {
      axes.group(name, 0, K, dim_heads);
      axes.group(name, 0, shape_->value_width, dim_heads + key_rows());
    }
  };
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    if (name == "weight" || name == "bias") lay(name, H * K, true, true);
    if (name == "query_weight" || name == "query_bias") lay(name, 0, true, false);
    if (name == "memory_weight" || name == "memory_bias") lay(name, 0, false, true);
  }
}

int64_t StandardProject::flops(int64_t T, int64_t S, int64_t slots) const {
  return 2 * T * shape_->width * slots * shape_->head_width +
         2 * S * shape_->memory_width * (key_rows() + value_rows());
}

void grouped_rule(const GroupedProjectOptions& options, const AttentionAround& around) {
  if (around.options.heads % options.groups != 0)
    around.problem("groups", "expected a divisor of heads (" + std::to_string(around.options.heads) + "), got " +
                                 std::to_string(options.groups));
}

}  // namespace headlab
