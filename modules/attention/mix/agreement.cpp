#include "modules/attention/mix/agreement.h"

#include <cmath>
#include <numbers>

#include "modules/attention/rules.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace F = torch::nn::functional;
namespace {

Tensor activated(const Tensor& x, const std::string& act) {
  if (act == "tanh") return x.tanh();
  if (act == "relu") return x.relu();
  if (act == "gelu") return torch::gelu(x);
  return x;
}

int64_t capsules_of(const AgreementOptions& options, int64_t heads) { return options.capsules.value_or(heads); }

}  // namespace

void AgreementOptions::describe_agreement(Fields& fields) {
  fields.add("capsules", capsules, "output capsules; their number divides d_model")
      .at_least(1)
      .means("absent: as many as heads");
  fields.add("input", input, "activation of the maps from all heads' outputs to each input capsule")
      .one_of({"tanh", "relu", "gelu", "linear"});
  fields.add("bias", bias, "add a learned bias in those maps");
}

std::string agreement_problem(const AgreementOptions& options, int64_t heads, int64_t width) {
  const auto capsules = capsules_of(options, heads);
  if (width % capsules == 0) return "";
  return "expected a number of output capsules that divides d_model (" + std::to_string(width) + "), got " +
         std::to_string(capsules) + (options.capsules ? "" : ", the number of heads");
}

Agreement::Agreement(const AgreementOptions& options, Shape shape, std::shared_ptr<Routing> of)
    : shape_(std::move(shape)), capsules_(capsules_of(options, shape_->original_heads)), act_(options.input) {
  if (const auto problem = agreement_problem(options, shape_->original_heads, shape_->width); !problem.empty())
    throw ShapeError("mix.capsules: " + problem);
  const auto I = shape_->original_heads, K = shape_->value_width;
  input = register_parameter("input", torch::empty({I * K, shape_->H() * K}));
  if (options.bias) input_bias = register_parameter("input_bias", torch::zeros({I * K}));
  votes = register_parameter("votes", torch::empty({I, K, shape_->width}));
  routing = register_module("routing", std::move(of));
}

void Agreement::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto I = shape_->original_heads, K = shape_->value_width;
  xavier_uniform(input, I * K, K, generator("input"));
  if (input_bias.defined()) input_bias.zero_();
  xavier_uniform(votes, K, shape_->width / capsules_, generator("votes"));
}

Routed Agreement::routed(const Tensor& z_BHTK) const {
  const auto made = F::linear(z_BHTK.transpose(1, 2).flatten(2), input, input_bias);
  return routed_of(activated(made, act_).unflatten(-1, at::IntArrayRef{shape_->original_heads, shape_->value_width}));
}

Routed Agreement::routed_of(const Tensor& made_BTIK) const {
  const auto votes_BTID = torch::matmul(made_BTIK.transpose(1, 2), votes).transpose(1, 2);  // [B,I,T,K] x [I,K,D]
  return routing->route(votes_BTID.unflatten(-1, at::IntArrayRef{capsules_, shape_->width / capsules_}));
}

Tensor Agreement::mix(const Tensor& z_BHTK, const HeadPlan&) { return routed(z_BHTK).capsules_BTJC.flatten(2); }

Tensor Agreement::nothing() const {
  const auto made = input_bias.defined() ? activated(input_bias, act_)
                                         : votes.new_zeros({shape_->original_heads * shape_->value_width});
  return routed_of(made.view({1, 1, shape_->original_heads, shape_->value_width})).capsules_BTJC.flatten();
}

int64_t Agreement::flops(int64_t T, int64_t slots) const {
  const auto I = shape_->original_heads, K = shape_->value_width, D = shape_->width;
  return 2 * T * I * K * (slots * K + D) + routing->flops(T, I, capsules_, D / capsules_);
}

void DynamicAgreementOptions::describe(Fields& fields) {
  describe_agreement(fields);
  fields.add("iterations", iterations, "rounds of routing").at_least(1);
}

DynamicAgreement::DynamicAgreement(const DynamicAgreementOptions& options, Shape shape)
    : Agreement(options, shape, std::make_shared<DynamicRouting>(options.iterations, DynamicRouting::Take::mean)) {}

void EmAgreementOptions::describe(Fields& fields) {
  describe_agreement(fields);
  describe_routing(fields);
}

EmAgreement::EmAgreement(const EmAgreementOptions& options, Shape shape)
    : Agreement(options, shape, [&] {
        const auto J = capsules_of(options, shape->original_heads);
        const auto width = static_cast<double>(shape->width / J);
        return std::make_shared<EmRouting>(options, J, 1.0, width * 0.5 * (1 + std::log(2 * std::numbers::pi)));
      }()) {}

void agreement_rule(const AgreementOptions& options, const AttentionAround& around) {
  const auto problem = agreement_problem(options, around.options.heads, around.width);
  if (!problem.empty()) around.problem("capsules", problem);
}

}  // namespace headlab
