#include "modules/attention/project/mix_heads.h"

#include <algorithm>
#include <numeric>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

MixHeads::MixHeads(const MixHeadsOptions& options, Shape shape) : shape_(std::move(shape)) {
  const auto has = [&](const char* what) { return std::count(options.mix.begin(), options.mix.end(), what) > 0; };
  if (has("k")) key_mix = register_parameter("key_mix", torch::empty({shape_->G(), shape_->H()}));
  if (has("v")) value_mix = register_parameter("value_mix", torch::empty({shape_->G(), shape_->H()}));
}

void MixHeads::draw(const std::function<at::Generator(const std::string&)>&) {
  for (auto& item : named_parameters()) {
    item.value().zero_();
    for (int64_t h = 0; h < shape_->H(); ++h) item.value()[shape_->group_of[h]][h] = 1;
  }
}

Tensor MixHeads::mixed(const Tensor& x_BGSK, const Tensor& lambda_GH) const {
  if (!lambda_GH.defined()) {
    std::vector<Tensor> of_head;
    for (auto group : shape_->group_of) of_head.push_back(x_BGSK.select(1, group));
    return torch::stack(of_head, 1);
  }
  // [B,S,K,G] x [G,H]: the components are the innermost dimension of the product
  const auto components_last = x_BGSK.permute({0, 2, 3, 1});
  const auto mixed = relevance::flows() ? relevance::linear(components_last, lambda_GH.t())
                                        : torch::matmul(components_last, lambda_GH);
  return mixed.permute({0, 3, 1, 2});
}

std::vector<Tensor> MixHeads::expand(std::vector<Tensor> kv) {
  return {mixed(kv[0], key_mix).contiguous(), mixed(kv[1], value_mix).contiguous()};
}

std::vector<int64_t> MixHeads::group_of(std::vector<int64_t> before) const {
  std::iota(before.begin(), before.end(), 0);
  return before;
}

void MixHeads::axes(HeadAxes axes) const {
  for (const auto& item : named_parameters()) {
    axes.group(item.key(), 0, 1);
    axes.head(item.key(), 1, 1);
  }
}

int64_t MixHeads::flops(int64_t, int64_t S) const {
  const auto of = [&](const Tensor& lambda, int64_t width) {
    return lambda.defined() ? 2 * S * shape_->G() * shape_->H() * width : 0;
  };
  return of(key_mix, shape_->head_width) + of(value_mix, shape_->value_width);
}

}  // namespace headlab
