#include "modules/attention/position/adarope.h"

#include <algorithm>
#include <cmath>

#include "modules/attention/position/rope.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/rules.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// -2i/K of each pair i.
Tensor exponents(int64_t K) { return torch::arange(0, K, 2, torch::kFloat64) / -static_cast<double>(K); }

/// Positions, or what is made of them, with a place for heads: [T] -> [1,T], [B,T] -> [B,1,T], [B,H,T] as it is.
Tensor for_heads(const Tensor& positions) { return positions.dim() == 3 ? positions : positions.unsqueeze(-2); }

}  // namespace

void AdaRopeOptions::describe(Fields& fields) {
  fields.add("base", base, "longest wavelength at the start is 2 pi base positions").above(1);
  fields.add("learn", learn, "frequencies: that of each pair; base: one number a table; none: they stay RoPE's")
      .one_of({"frequencies", "base", "none"});
  fields
      .add("share", share,
           "whose frequencies they are: a key/value group's; a head's, where each has keys of its own; all heads' of "
           "the layer; or all layers' of the model")
      .one_of({"kv_head", "head", "layer", "model"});
  fields.add("length_scale", length_scale,
             "learn a factor of each head's scores, and how it grows beyond train_length");
  fields.add("train_length", train_length, "L: length of the texts beyond which scores may grow")
      .at_least(1)
      .unit("tokens")
      .means("absent: scores don't grow with length");
  fields.add("growth", growth, "a at the start; 0.1: YaRN's temperature").at_least(0);
}

void AdaRopeOptions::rules(Problems& problems) const {
  if (train_length && !length_scale) problems.add("train_length", "has no effect without length_scale");
  if (growth != 0 && !(length_scale && train_length))
    problems.add("growth", "has no effect without length_scale and a train_length");
}

std::string adarope_problem(const AdaRopeOptions& options, int64_t K, bool shared_keys) {
  if (K % 2 != 0) return "adarope: expected an even head width, of pairs to turn, got " + std::to_string(K);
  if (options.share == "head" && shared_keys)
    return "adarope.share: expected kv_head, layer or model where heads share keys, since a cached key turns in one "
           "way only, got head";
  return "";
}

AdaRope::AdaRope(const AdaRopeOptions& options, Shape shape) : options_(options), shape_(std::move(shape)) {
  if (shape_->cross)
    throw ShapeError(
        "position.adarope: expected a self-attention; a cross-attention's queries and keys share no positions");
  const auto K = shape_->head_width;
  const auto problem = adarope_problem(options_, K, shape_->G() != shape_->H());
  if (!problem.empty()) throw ShapeError("position." + problem);
  const auto tables = options_.one_table() ? 1 : shape_->G();
  if (options_.learn == "base") {
    log_base = register_parameter("log_base", torch::zeros({tables, 1}));
    exponent = register_buffer("exponent", exponents(K).to(torch::get_default_dtype()));
  } else {
    const auto values = torch::zeros({tables, K / 2});
    log_frequency = options_.learn == "none" ? register_buffer("log_frequency", values)
                                             : register_parameter("log_frequency", values);
  }
  if (options_.length_scale) {
    factor = register_parameter("factor", torch::zeros({shape_->H()}));
    if (options_.train_length) growth = register_parameter("growth", torch::zeros({shape_->H()}));
  }
  const torch::NoGradGuard no_grad;
  draw({});  // what does not learn has its values from the start
}

void AdaRope::draw(const std::function<at::Generator(const std::string&)>&) {
  if (log_base.defined()) log_base.fill_(std::log(options_.base));
  if (log_frequency.defined()) log_frequency.copy_(std::log(options_.base) * exponents(shape_->head_width));
  if (factor.defined()) factor.fill_(1);
  if (growth.defined()) growth.fill_(options_.growth);
}

Tensor AdaRope::log_frequencies() const { return log_base.defined() ? log_base * exponent : log_frequency; }

Tensor AdaRope::of_heads(const Tensor& x) const { return options_.one_table() ? x : pick(x, 0, shape_->group_of); }

Tensor AdaRope::frequencies() const {
  return of_heads(log_frequencies()).exp().expand({shape_->H(), shape_->head_width / 2});
}

Tensor AdaRope::turn(const Tensor& x, const Tensor& positions, const Tensor& log_frequency) const {
  const auto frequency = log_frequency.exp().unsqueeze(-2);  // [G,1,K/2], [H,1,K/2] or [1,1,K/2]
  return turned(x, for_heads(positions).unsqueeze(-1).to(frequency.scalar_type()) * frequency, shape_->head_width);
}

Tensor AdaRope::rotate(Tensor x_BGTK, const Tensor& positions) { return turn(x_BGTK, positions, log_frequencies()); }

Tensor AdaRope::query(Tensor q_BHTK, const Tensor& positions) {
  const auto q = turn(q_BHTK, positions, of_heads(log_frequencies()));
  if (!factor.defined()) return q;
  auto scale = factor.unsqueeze(-1);  // [H,1]
  if (growth.defined()) {
    const auto n = for_heads(positions + 1).to(growth.scalar_type());
    const auto beyond = (n / static_cast<double>(*options_.train_length)).clamp_min(1).log();
    scale = scale * (1 + growth.unsqueeze(-1) * beyond).square();  // [H,T] or [B,H,T]
  }
  return q * scale.unsqueeze(-1).to(q.scalar_type());
}

void AdaRope::axes(HeadAxes axes) const {
  if (!options_.one_table()) axes.group(log_base.defined() ? "log_base" : "log_frequency", 0, 1);
  if (factor.defined()) axes.head("factor", 0, 1);
  if (growth.defined()) axes.head("growth", 0, 1);
}

bool AdaRope::tie(const Tied& first) {
  const auto* other = dynamic_cast<const AdaRope*>(&first);
  const auto same = [&](auto AdaRopeOptions::*option) { return options_.*option == other->options_.*option; };
  if (!other || options_.share != "model" || options_.learn == "none" || !same(&AdaRopeOptions::share) ||
      !same(&AdaRopeOptions::learn) || !same(&AdaRopeOptions::base) || shape_->head_width != other->shape_->head_width)
    return false;
  if (log_base.defined())
    log_base = parameters_["log_base"] = other->log_base;
  else
    log_frequency = parameters_["log_frequency"] = other->log_frequency;
  return true;
}

// In half precision a frequency would be off by a radian within a thousand positions.
void AdaRope::to(torch::Dtype dtype, bool non_blocking) { Position::to(at_least_float(dtype), non_blocking); }
void AdaRope::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  Position::to(device, at_least_float(dtype), non_blocking);
}

void adarope_rule(const AdaRopeOptions& options, const AttentionAround& around) {
  const bool shared_keys = around.key_heads().value_or(around.options.heads) < around.options.heads;
  if (const auto problem = adarope_problem(options, around.head_width, shared_keys); !problem.empty())
    around.problem("", problem);
  for (const auto& adapter : around.options.then.items)
    if (const auto* mixed = dynamic_cast<const MixHeadsOptions*>(&adapter.options());
        mixed && !options.one_table() && std::count(mixed->mix.begin(), mixed->mix.end(), "k") > 0)
      around.problem("share",
                     "adarope: expected layer or model beside mix_heads, whose keys are sums over heads: sums of keys "
                     "that turn each at its own rate know no distance; got " +
                         options.share);
}

}  // namespace headlab
