#include "src/convert/mix_heads.h"

#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/standard.h"
#include "modules/tensor/torch.h"
#include "src/convert/head_maps.h"

namespace headlab {
namespace {

/// Rows [H,N] as mixes of `count` components: {mix [count,H], components [count,N]}.
std::pair<Tensor, Tensor> factored(const Tensor& rows_HN, int64_t count) {
  auto [U, S, V] = torch::linalg_svd(rows_HN, /*full_matrices=*/false);
  const auto rank = std::min(count, S.size(0));
  const auto root = S.narrow(0, 0, rank).sqrt();
  const auto with_zeros = [&](const Tensor& some) {
    return torch::cat({some, torch::zeros({count - rank, some.size(1)}, some.options())});
  };
  return {with_zeros((U.narrow(1, 0, rank) * root).t()), with_zeros(root.unsqueeze(1) * V.narrow(0, 0, rank))};
}

/// Weights [n,D,K] and biases [n,K], if any, as rows [n, (D + 1) K].
Tensor as_rows_of_units(const Tensor& weight, const Tensor& bias) {
  return (bias.defined() ? torch::cat({weight, bias.unsqueeze(1)}, 1) : weight).flatten(1);
}

}  // namespace

AttentionOptions MixHeadsConversion::options(const Attention& from, Site site) {
  auto options = from.options();
  const auto maps = head_maps(from, site);
  options.project.choose("grouped");
  auto& grouped = options.project.as<GroupedProjectOptions>();
  grouped.groups = options_.components;
  grouped.bias = maps.key_bias_GK.defined();
  options.then.items = {Choice(adapter_catalogue, "mix_heads")};
  return options;
}

nlohmann::ordered_json MixHeadsConversion::weights(const Attention& from, Attention& to, Site site) {
  const auto maps = head_maps(from, site);
  auto made = maps;
  const auto convert = [&](const char* parameter, Tensor& weight, Tensor& bias) {
    const auto rows = as_rows_of_units(weight, bias);
    const auto [mix, components] = factored(rows, options_.components);
    parameter_of(to, std::string("then0.") + parameter).copy_(mix);
    const auto units = components.unflatten(1, {-1, weight.size(2)});
    weight = units.narrow(1, 0, weight.size(1));
    if (bias.defined()) bias = units.select(1, units.size(1) - 1);
    const auto size = rows.norm().item<double>();
    return size > 0 ? (rows - mix.t().matmul(components)).norm().item<double>() / size : 0.0;
  };
  const auto key_error = convert("key_mix", made.key_GDK, made.key_bias_GK);
  const auto value_error = convert("value_mix", made.value_GDK, made.value_bias_GK);
  set_head_maps(to, made);
  return {{"key_error", key_error}, {"value_error", value_error}};
}

}  // namespace headlab
