#include "modules/attention/mix/grouped_average.h"

#include "modules/attention/rules.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void GroupedAverageOptions::describe(Fields& fields) {
  fields.add("bias", bias, "add a learned bias to the output");
  fields.add("concatenated", concatenated, "heads that are concatenated for one product; the products are averaged")
      .at_least(1)
      .means("absent: as many as make d_model, d_model / width of values");
}

std::string grouped_average_problem(const GroupedAverageOptions& options, int64_t D, int64_t H, int64_t value_width) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (!options.concatenated && D % value_width != 0)
    return "grouped_average: expected values whose width divides d_model (" + number(D) +
           "), or a number of heads to concatenate, got " + "width " + number(value_width);
  const auto together = options.concatenated.value_or(D / value_width);
  if (H % together != 0)
    return "grouped_average: expected to concatenate a divisor of the heads (" + number(H) + "), got " +
           number(together) + (options.concatenated ? "" : ", d_model / width of values");
  return "";
}

GroupedAverage::GroupedAverage(const GroupedAverageOptions& options, Shape shape) : shape_(std::move(shape)) {
  const auto problem = grouped_average_problem(options, shape_->width, shape_->original_heads, shape_->value_width);
  if (!problem.empty()) throw ShapeError("mix." + problem);
  together_ = options.concatenated.value_or(shape_->width / shape_->value_width);
  weight = register_parameter("weight", torch::empty({shape_->width, together_ * shape_->value_width}));
  if (options.bias) bias = register_parameter("bias", torch::zeros({shape_->width}));
}

void GroupedAverage::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, weight.size(1), weight.size(0), generator("weight"));
  if (bias.defined()) bias.zero_();
}

std::vector<int64_t> GroupedAverage::places() const {
  std::vector<int64_t> places;
  for (const auto head : shape_->heads) places.push_back(head % together_);
  return places;
}

std::vector<std::vector<int64_t>> GroupedAverage::heads_by_place() const {
  std::vector<std::vector<int64_t>> heads(together_);
  const auto place = places();
  for (std::size_t h = 0; h < place.size(); ++h) heads[place[h]].push_back(static_cast<int64_t>(h));
  return heads;
}

Tensor GroupedAverage::mix(const Tensor& z_BHTK, const HeadPlan&) {
  const auto share = static_cast<double>(together_) / static_cast<double>(shape_->original_heads);
  const auto weight_DCK = weight.unflatten(1, at::IntArrayRef{together_, shape_->value_width});
  if (relevance::flows())  // one map from the heads, one rule
    return relevance::linear(z_BHTK.transpose(1, 2).flatten(2), (share * pick(weight_DCK, 1, places())).flatten(1),
                             bias);
  std::vector<Tensor> sums;
  std::vector<int64_t> filled;
  const auto heads = heads_by_place();
  for (int64_t place = 0; place < together_; ++place) {
    if (heads[place].empty()) continue;
    sums.push_back(pick(z_BHTK, 1, heads[place]).sum(1));
    filled.push_back(place);
  }
  const auto mean_BTCK = share * torch::cat(sums, -1);
  return relevance::linear(mean_BTCK, pick(weight_DCK, 1, filled).flatten(1), bias);
}

Tensor GroupedAverage::per_head(const Tensor& z_BHTK) {
  const auto share = static_cast<double>(together_) / static_cast<double>(shape_->original_heads);
  const auto weight_CKD = weight.t().unflatten(0, at::IntArrayRef{together_, shape_->value_width});
  return share * torch::matmul(z_BHTK, pick(weight_CKD, 0, places()));
}

Tensor GroupedAverage::nothing() const { return bias.defined() ? bias : weight.new_zeros({shape_->width}); }

int64_t GroupedAverage::flops(int64_t T, int64_t) const {
  int64_t filled = 0;
  for (const auto& heads : heads_by_place()) filled += heads.empty() ? 0 : 1;
  return 2 * T * filled * shape_->value_width * shape_->width;
}

void grouped_average_rule(const GroupedAverageOptions& options, const AttentionAround& around) {
  const auto problem = grouped_average_problem(options, around.width, around.options.heads, around.value_width());
  if (!problem.empty()) around.problem("", problem);
}

}  // namespace headlab
