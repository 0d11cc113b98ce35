#include "modules/attention/position/transformer_xl.h"

#include <cmath>

#include "modules/attention/rules.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/tensor/torch.h"

namespace headlab {

std::string transformer_xl_problem(int64_t D) {
  return D % 2 == 0 ? "" : "transformer_xl: expected an even d_model, of sines and cosines, got " + std::to_string(D);
}

TransformerXl::TransformerXl(const TransformerXlOptions& options, Shape shape) : shape_(std::move(shape)) {
  if (shape_->cross)
    throw ShapeError(
        "position.transformer_xl: expected a self-attention; a cross-attention's queries and keys share no positions");
  const auto D = shape_->width, H = shape_->H(), K = shape_->head_width;
  const auto problem = transformer_xl_problem(D);
  if (!problem.empty()) throw ShapeError("position." + problem);
  weight = register_parameter("weight", torch::empty({H, K, D}));
  if (options.biases) {
    content_bias = register_parameter("content_bias", torch::zeros({H, K}));
    position_bias = register_parameter("position_bias", torch::zeros({H, K}));
  }
  frequency = register_buffer("frequency",
                              torch::pow(10000.0, torch::arange(0, D, 2, torch::kFloat64) / -static_cast<double>(D))
                                  .to(torch::get_default_dtype()));
}

void TransformerXl::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, shape_->width, shape_->original_heads * shape_->head_width, generator("weight"));
  if (!content_bias.defined()) return;
  content_bias.zero_();
  position_bias.zero_();
}

Tensor TransformerXl::query(Tensor q_BHTK, const Tensor&) {
  return content_bias.defined() ? q_BHTK + content_bias.to(q_BHTK.scalar_type()).unsqueeze(1) : q_BHTK;
}

Tensor TransformerXl::bias(const Tensor& q_BHTK, const Tensor& q_pos, const Tensor& k_pos) {
  const auto q =
      content_bias.defined() ? q_BHTK + (position_bias - content_bias).to(q_BHTK.scalar_type()).unsqueeze(1) : q_BHTK;
  const auto a = torch::matmul(q, weight)
                     .to(at_least_float(q.scalar_type()))
                     .chunk(2, -1);  // sines' and cosines' parts, [B,H,T,D/2]
  const auto angles = [&](const Tensor& positions) {
    const auto of = positions.unsqueeze(-1).to(frequency.scalar_type()) * frequency;  // [T,D/2] or [B,T,D/2]
    return positions.dim() == 2 ? of.unsqueeze(1) : of;                               // one for all heads
  };
  const auto of_q = angles(q_pos), of_k = angles(k_pos);
  const auto sin_q = of_q.sin(), cos_q = of_q.cos();
  const auto turned = torch::cat({a[0] * sin_q + a[1] * cos_q, a[1] * sin_q - a[0] * cos_q}, -1);
  const auto places = torch::cat({of_k.cos(), of_k.sin()}, -1).to(turned.scalar_type());
  return torch::matmul(turned, places.transpose(-2, -1)) / std::sqrt(static_cast<double>(shape_->head_width));
}

void TransformerXl::axes(HeadAxes axes) const {
  for (const auto& item : named_parameters()) axes.head(item.key(), 0, 1);
}

int64_t TransformerXl::flops(int64_t T, int64_t S, int64_t slots) const {
  return 2 * slots * T * shape_->width * (shape_->head_width + S);
}

// In half precision a frequency would be off by a radian within a thousand positions.
void TransformerXl::to(torch::Dtype dtype, bool non_blocking) {
  const auto exact = frequency.clone();
  Position::to(dtype, non_blocking);
  frequency.set_data(exact.to(at_least_float(dtype)));
}
void TransformerXl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  const auto exact = frequency.clone();
  Position::to(device, dtype, non_blocking);
  frequency.set_data(exact.to(device, at_least_float(dtype)));
}

void transformer_xl_rule(const TransformerXlOptions&, const AttentionAround& around) {
  if (const auto problem = transformer_xl_problem(around.width); !problem.empty()) around.problem("", problem);
  const auto* product = dynamic_cast<const DotProductOptions*>(&around.options.weigh.score.options());
  if (!product || product->scale)
    around.beside("weigh.score",
                  "expected dot_product with its own scale beside the position transformer_xl, whose part of the score "
                  "has the same factor 1/sqrt(head width)");
}

}  // namespace headlab
