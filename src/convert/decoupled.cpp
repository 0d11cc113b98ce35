#include "src/convert/decoupled.h"

#include <algorithm>

#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/fuse_groups.h"
#include "modules/tensor/torch.h"
#include "src/convert/head_maps.h"

namespace headlab {
namespace {

const FuseGroups* fusion_of(const Attention& attention) {
  for (const auto& module : attention.modules(/*include_self=*/false))
    if (const auto* fuse = dynamic_cast<const FuseGroups*>(module.get())) return fuse;
  return nullptr;
}

/// The means of each group: [H, ...] -> [n, ...].
Tensor group_means(const Tensor& x, const std::vector<int64_t>& group_of) {
  const auto index = torch::tensor(group_of, torch::kLong);
  const auto n = *std::max_element(group_of.begin(), group_of.end()) + 1;
  std::vector<Tensor> means;
  for (int64_t group = 0; group < n; ++group) means.push_back(x.index({index.eq(group)}).mean(0));
  return torch::stack(means);
}

}  // namespace

void DecoupledConversion::look(const ConversionWork& work) {
  const auto fusing = std::count_if(work.attentions.begin(), work.attentions.end(),
                                    [](const auto& one) { return fusion_of(*one.attention); });
  if (fusing == 0) {
    groups_ = group_heads(work, options_.grouping);
    return;
  }
  for (const auto& [site, attention] : work.attentions) {
    if (!fusion_of(*attention))
      throw UsageError(
          "convert: " + to_string(site) +
          ": expected the adapter fuse_groups, as other attentions here have it; name stacks and layers with it alone");
    if (attention->shape().H() != attention->original_heads())
      throw UsageError("convert: " + to_string(site) + ": expected all heads; prune them after the conversion");
    const auto& fuse = attention->options().then.items[0].as<FuseGroupsOptions>();
    const auto of_heads = [&](const std::vector<int64_t>& map) {
      const auto groups = fusion_groups(map, attention->shape().G());
      std::vector<int64_t> of;
      for (auto group : attention->shape().group_of) of.push_back(groups[group]);
      return of;
    };
    groups_[site] = {of_heads(fuse.k_map), of_heads(fuse.v_map)};
  }
}

AttentionOptions DecoupledConversion::options(const Attention& from, Site site) {
  auto options = from.options();
  const bool bias = head_maps(from, site).key_bias_GK.defined();
  options.project.choose("decoupled");
  auto& decoupled = options.project.as<DecoupledProjectOptions>();
  decoupled.k_map = groups_.at(site).keys;
  decoupled.v_map = groups_.at(site).values;
  decoupled.bias = bias;
  options.then.items.clear();
  return options;
}

nlohmann::ordered_json DecoupledConversion::weights(const Attention& from, Attention& to, Site site) {
  const auto maps = head_maps(from, site);
  const auto set = [&](const char* name, const Tensor& units_nDK, const Tensor& bias_nK) {
    parameter_of(to, std::string("project.") + name + "_weight").copy_(units_nDK.transpose(1, 2).flatten(0, 1));
    if (bias_nK.defined()) parameter_of(to, std::string("project.") + name + "_bias").copy_(bias_nK.flatten());
  };
  set("query", maps.query_HDK, maps.query_bias_HK);
  const auto share = [&](const char* name, const Tensor& weight_HDK, const Tensor& bias_HK,
                         const std::vector<int64_t>& group_of) {
    const auto means = group_means(weight_HDK, group_of);
    set(name, means, bias_HK.defined() ? group_means(bias_HK, group_of) : Tensor());
    const auto size = weight_HDK.norm().item<double>();
    return size > 0
               ? (weight_HDK - means.index_select(0, torch::tensor(group_of, torch::kLong))).norm().item<double>() /
                     size
               : 0.0;
  };
  const auto& groups = groups_.at(site);
  const auto key_error = share("key", maps.key_GDK, maps.key_bias_GK, groups.keys);
  const auto value_error = share("value", maps.value_GDK, maps.value_bias_GK, groups.values);
  const auto count = [](const std::vector<int64_t>& map) { return *std::max_element(map.begin(), map.end()) + 1; };
  nlohmann::ordered_json figures{{"key_groups", count(groups.keys)},
                                 {"value_groups", count(groups.values)},
                                 {"key_error", key_error},
                                 {"value_error", value_error}};
  if (const auto* fuse = fusion_of(from)) {
    const auto [keys, values] = fuse->left();
    figures["key_fusion"] = keys;
    figures["value_fusion"] = values;
  }
  return figures;
}

}  // namespace headlab
