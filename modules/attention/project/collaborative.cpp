#include "modules/attention/project/collaborative.h"

#include <cmath>

#include "modules/attention/project/split_heads.h"
#include "modules/attention/rules.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void CollaborativeOptions::describe(Fields& fields) {
  fields.add("content_bias", content_bias, "add to a key's scores what it says to each head, whatever the query");
  fields.add("bias", bias, "add a learned bias to values");
  fields
      .add("init", init,
           "what heads make of the shared dimensions at the start: normal numbers, a block of ones each, or ones")
      .one_of({"normal", "blocks", "ones"});
  fields.add("deviation", deviation, "standard deviation of the normal numbers").above(0);
  fields.add("divide_by", divide_by, "what scores are divided by").above(0).means("absent: sqrt(head_width / heads)");
}

std::string collaborative_problem(const CollaborativeOptions& options, int64_t heads, int64_t head_width) {
  if (options.init != "blocks" || head_width % heads == 0) return {};
  return "expected heads (" + std::to_string(heads) +
         ") to divide head_width, since each begins with a block of its own; got " + std::to_string(head_width) +
         "; use init \"normal\", or another head_width";
}

Collaborative::Collaborative(const CollaborativeOptions& options, Shape shape)
    : options_(options), shape_(std::move(shape)) {
  const auto problem = collaborative_problem(options, shape_->original_heads, shape_->head_width);
  if (!problem.empty()) throw ShapeError("project.init: " + problem);
  set_groups(*shape_, shape_->original_heads);
  const auto K = shape_->head_width, H = shape_->H(), values = shape_->G() * shape_->value_width;
  divide_by_ =
      options.divide_by.value_or(std::sqrt(static_cast<double>(K) / static_cast<double>(shape_->original_heads)));
  query_weight = register_parameter("query_weight", torch::empty({K, shape_->width}));
  key_weight = register_parameter("key_weight", torch::empty({K, shape_->memory_width}));
  mix = register_parameter("mix", torch::empty({H, K}));
  if (options.content_bias) content = register_parameter("content", torch::zeros({H, shape_->memory_width}));
  value_weight = register_parameter("value_weight", torch::empty({values, shape_->memory_width}));
  if (options.bias) value_bias = register_parameter("value_bias", torch::zeros({values}));
}

void Collaborative::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto K = shape_->head_width, H = shape_->original_heads;
  xavier_uniform(query_weight, shape_->width, K, generator("query_weight"));
  xavier_uniform(key_weight, shape_->memory_width, K, generator("key_weight"));
  xavier_uniform(value_weight, shape_->memory_width, H * shape_->value_width, generator("value_weight"));
  if (options_.init == "normal") {
    mix.copy_(torch::empty(mix.sizes(), torch::kFloat64).normal_(0, options_.deviation, generator("mix")));
  } else if (options_.init == "ones") {
    mix.fill_(1);
  } else {
    mix.zero_();
    for (int64_t h = 0; h < shape_->H(); ++h) mix[h].narrow(0, shape_->heads[h] * (K / H), K / H).fill_(1);
  }
  for (const auto& zero : {content, value_bias})
    if (zero.defined()) zero.zero_();
}

Tensor Collaborative::query(const Tensor& x_BTD, const HeadPlan&) {
  const auto factor = std::sqrt(static_cast<double>(shape_->head_width)) / divide_by_;
  const auto shared_B1TK = relevance::linear(x_BTD, query_weight).unsqueeze(1);
  return shared_B1TK * (mix * factor).unsqueeze(1).to(shared_B1TK.scalar_type());
}

std::vector<Tensor> Collaborative::remember(const Tensor& memory_BSD) {
  std::vector<Tensor> stored{relevance::linear(memory_BSD, key_weight).unsqueeze(1),
                             split_heads(relevance::linear(memory_BSD, value_weight, value_bias), shape_->value_width)};
  if (content.defined()) stored.push_back(relevance::linear(memory_BSD, content).transpose(1, 2).unsqueeze(-1));
  return stored;
}

std::vector<Tensor> Collaborative::read(const std::vector<Tensor>& stored) {
  return {stored[0].expand({-1, shape_->G(), -1, -1}), stored[1]};
}

Tensor Collaborative::bias(const std::vector<Tensor>& stored) {
  return content.defined() ? stored[2].transpose(2, 3) / divide_by_ : Tensor();
}

bool Collaborative::learns_bias() const { return content.defined() && at::GradMode::is_enabled(); }

std::optional<int64_t> Collaborative::cache_numbers() const {
  return shape_->head_width + shape_->G() * shape_->value_width + (content.defined() ? shape_->H() : 0);
}

void Collaborative::axes(HeadAxes axes) const {
  axes.head("mix", 0, 1);
  if (content.defined()) axes.head("content", 0, 1);
  axes.group("value_weight", 0, shape_->value_width);
  if (value_bias.defined()) axes.group("value_bias", 0, shape_->value_width);
}

int64_t Collaborative::flops(int64_t T, int64_t S, int64_t) const {
  const auto of_memory = key_weight.numel() + value_weight.numel() + (content.defined() ? content.numel() : 0);
  return 2 * T * query_weight.numel() + 2 * S * of_memory;
}

void collaborative_rule(const CollaborativeOptions& options, const AttentionAround& around) {
  const auto problem = collaborative_problem(options, around.options.heads, around.head_width);
  if (!problem.empty()) around.problem("init", problem);
  const auto* product = dynamic_cast<const DotProductOptions*>(&around.options.weigh.score.options());
  if (product && product->scale)
    around.beside("weigh.score.scale",
                  "expected none beside the project collaborative, which says itself what scores are divided by "
                  "(divide_by)");
}

}  // namespace headlab
