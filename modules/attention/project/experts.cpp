#include "modules/attention/project/experts.h"

#include <algorithm>
#include <cmath>

#include "modules/attention/rules.h"
#include "modules/tensor/torch.h"

namespace headlab {

namespace {

/// rows[order / per_row], whose gradient is gathered too: each row stands `per_row` times in `order`, a permutation
/// whose inverse is given. The gradient of a plain index would be added up row by row.
struct Gathered : torch::autograd::Function<Gathered> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& rows, const Tensor& order,
                        const Tensor& inverse, int64_t per_row) {
    context->save_for_backward({inverse});
    context->saved_data["per_row"] = per_row;
    return rows.index_select(0, per_row == 1 ? order : order.div(per_row, "floor"));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto per_row = context->saved_data["per_row"].toInt();
    auto gathered = gradients[0].index_select(0, context->get_saved_variables()[0]);
    if (per_row > 1) gathered = gathered.unflatten(0, at::IntArrayRef{gathered.size(0) / per_row, per_row}).sum(1);
    return {gathered, Tensor(), Tensor(), Tensor()};
  }
};

/// The same without a size read, so that lengths stay free in a recording.
Tensor recorded_expert_product(const Tensor& rows, const Tensor& chosen, const Tensor& weight, int64_t per_row) {
  std::vector<Tensor> places, products;
  for (int64_t expert = 0; expert < weight.size(0); ++expert) {
    const auto mine = chosen.eq(expert).nonzero().squeeze(-1);
    places.push_back(mine);
    products.push_back(
        torch::mm(rows.index_select(0, per_row == 1 ? mine : mine.div(per_row, "floor")), weight[expert]));
  }
  if (places.empty()) return rows.new_empty({0, weight.size(2)});
  return torch::cat(products, 0).index_select(0, torch::cat(places, 0).argsort());
}

}  // namespace

Tensor expert_product(const Tensor& rows, const Tensor& chosen, const Tensor& weight, int64_t per_row) {
  if (recording()) return recorded_expert_product(rows, chosen, weight, per_row);
  if (chosen.numel() == 0) return rows.new_empty({0, weight.size(2)});
  // Rows sorted by expert; each expert multiplies its own stretch.
  const auto order = chosen.argsort(/*stable=*/true);
  const auto inverse = torch::empty_like(order).scatter_(0, order, torch::arange(order.size(0), order.options()));
  const auto counts = chosen.bincount({}, weight.size(0)).to(torch::kCPU);
  const std::vector<int64_t> sizes(counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + counts.numel());
  const auto stretches = Gathered::apply(rows, order, inverse, per_row).split_with_sizes(sizes);
  const auto matrices =
      weight.unbind(0);  // one backward for all, where indexing would have one as large as `weight` each
  std::vector<Tensor> products;
  for (std::size_t expert = 0; expert < sizes.size(); ++expert)
    if (sizes[expert] > 0) products.push_back(torch::mm(stretches[expert], matrices[expert]));
  return Gathered::apply(torch::cat(products, 0), inverse, order, 1);
}

ExpertsProject::ExpertsProject(const ExpertsProjectOptions&, Shape shape) : shape_(std::move(shape)) {
  set_groups(*shape_, 1);
  const auto E = shape_->H(), K = shape_->head_width;
  query_weight = register_parameter("query_weight", torch::empty({E, shape_->width, K}));
  key_weight = register_parameter("key_weight", torch::empty({shape_->G() * K, shape_->memory_width}));
  value_weight =
      register_parameter("value_weight", torch::empty({shape_->G() * shape_->value_width, shape_->memory_width}));
}

void ExpertsProject::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto D = shape_->width, K = shape_->head_width;
  xavier_uniform(query_weight, D, K, generator("query_weight"));
  xavier_uniform(key_weight, shape_->memory_width, K, generator("key_weight"), 1 / std::sqrt(2.0));
  xavier_uniform(value_weight, shape_->memory_width, shape_->value_width, generator("value_weight"),
                 1 / std::sqrt(2.0));
}

Tensor ExpertsProject::query(const Tensor& x_BTD, const HeadPlan& plan) {
  if (!plan.chosen_BTk.defined()) return torch::einsum("btd,edk->betk", {x_BTD, query_weight});
  const auto& chosen = plan.chosen_BTk;
  const auto q = expert_product(x_BTD.flatten(0, 1), chosen.flatten(), query_weight, chosen.size(2));
  return q.view_as(chosen.unsqueeze(-1).expand({-1, -1, -1, shape_->head_width})).permute({0, 2, 1, 3});
}

std::vector<Tensor> ExpertsProject::remember(const Tensor& memory_BSD) {
  return {torch::matmul(memory_BSD, key_weight.t()).unsqueeze(1),
          torch::matmul(memory_BSD, value_weight.t()).unsqueeze(1)};
}

void ExpertsProject::axes(HeadAxes axes) const {
  axes.head("query_weight", 0, 1);
  axes.group("key_weight", 0, shape_->head_width);
  axes.group("value_weight", 0, shape_->value_width);
}

int64_t ExpertsProject::flops(int64_t T, int64_t S, int64_t slots) const {
  return 2 * T * slots * shape_->width * shape_->head_width +
         2 * S * shape_->memory_width * shape_->G() * (shape_->head_width + shape_->value_width);
}

void experts_rule(const Options&, const AttentionAround& around) {
  const auto &project = around.options.project.type(), &mix = around.options.mix.type();
  const auto& list = around.options.gates.items;
  const bool makes = project == "experts", mixes = mix == "experts";
  const bool routes =
      std::any_of(list.begin(), list.end(), [](const Choice& gate) { return gate.type() == "route_experts"; });
  if (makes && mixes && routes) return;
  const std::string first = makes ? ".project" : routes ? ".gates" : ".mix";
  if (around.at.rfind(around.attention + first, 0) != 0) return;
  around.beside("project",
                "the project \"experts\", the mix \"experts\" and the gate \"route_experts\" go together; got "
                "project \"" +
                    project + "\", mix \"" + mix + "\" and " + (routes ? "the gate" : "no such gate"));
}

}  // namespace headlab
