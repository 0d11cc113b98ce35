#include "modules/attention/mix/capsules.h"

#include "modules/tensor/torch.h"

namespace headlab {
namespace F = torch::nn::functional;

void CapsulesOptions::describe_capsules(Fields& fields) {
  fields.add("capsules", capsules, "output capsules").at_least(1).means("absent: as many as heads");
  fields.add("width", width, "width of an output capsule").at_least(1).means("absent: the width of a head's values");
  fields
      .add("merge", merge, "add: what capsules find is added to the heads' outputs times W_O; replace: it stands alone")
      .one_of({"add", "replace"});
  fields.add("bias", bias, "add a learned bias to the output");
}

Capsules::Sizes Capsules::sizes_of(const CapsulesOptions& options, const AttentionShape& shape) {
  return {options.capsules.value_or(shape.original_heads), options.width.value_or(shape.value_width)};
}

Capsules::Capsules(const CapsulesOptions& options, Shape shape, std::shared_ptr<Routing> of)
    : shape_(std::move(shape)), sizes_(sizes_of(options, *shape_)) {
  const auto H = shape_->H(), K = shape_->value_width, D = shape_->width, found = sizes_.capsules * sizes_.width;
  if (options.merge == "add") weight = register_parameter("weight", torch::empty({D, H * K}));
  if (options.bias) bias = register_parameter("bias", torch::zeros({D}));
  votes = register_parameter("votes", torch::empty({H, K, found}));
  output = register_parameter("output", torch::empty({D, found}));
  routing = register_module("routing", std::move(of));
}

void Capsules::draw(const std::function<at::Generator(const std::string&)>& generator) {
  if (weight.defined())
    xavier_uniform(weight, shape_->original_heads * shape_->value_width, shape_->width, generator("weight"));
  if (bias.defined()) bias.zero_();
  xavier_uniform(votes, shape_->value_width, sizes_.width, generator("votes"));
  xavier_uniform(output, output.size(1), output.size(0), generator("output"));
}

Routed Capsules::routed(const Tensor& z_BHTK) const {
  const auto votes_BTHF = torch::matmul(z_BHTK, votes).transpose(1, 2);  // [B,H,T,K] x [H,K,JC]
  return routing->route(votes_BTHF.unflatten(-1, at::IntArrayRef{sizes_.capsules, sizes_.width}));
}

Tensor Capsules::mix(const Tensor& z_BHTK, const HeadPlan&) {
  const auto found = F::linear(routed(z_BHTK).capsules_BTJC.flatten(2), output, bias);
  return weight.defined() ? F::linear(z_BHTK.transpose(1, 2).flatten(2), weight) + found : found;
}

Tensor Capsules::nothing() const { return bias.defined() ? bias : output.new_zeros({shape_->width}); }

void Capsules::axes(HeadAxes axes) const {
  if (weight.defined()) axes.head("weight", 1, shape_->value_width);
  axes.head("votes", 0, 1);
}

int64_t Capsules::flops(int64_t T, int64_t slots) const {
  const auto K = shape_->value_width, D = shape_->width, found = sizes_.capsules * sizes_.width;
  return 2 * T * (slots * K * ((weight.defined() ? D : 0) + found) + found * D) +
         routing->flops(T, slots, sizes_.capsules, sizes_.width);
}

void DynamicCapsulesOptions::describe(Fields& fields) {
  describe_capsules(fields);
  fields.add("iterations", iterations, "rounds of routing").at_least(1);
  fields.add("squash", squash, "squash output capsules to a length below 1");
}

DynamicCapsules::DynamicCapsules(const DynamicCapsulesOptions& options, Shape shape)
    : Capsules(options, std::move(shape),
               std::make_shared<DynamicRouting>(
                   options.iterations, options.squash ? DynamicRouting::Take::squash : DynamicRouting::Take::sum)) {}

EmCapsulesOptions::EmCapsulesOptions() {
  floor = 1e-2;
  rising = true;
}

void EmCapsulesOptions::describe(Fields& fields) {
  describe_capsules(fields);
  describe_routing(fields);
}

EmCapsules::EmCapsules(const EmCapsulesOptions& options, Shape shape)
    : Capsules(options, shape, [&] {
        const auto sizes = sizes_of(options, *shape);
        return std::make_shared<EmRouting>(options, sizes.capsules, static_cast<double>(sizes.width), 0.0);
      }()) {}

}  // namespace headlab
