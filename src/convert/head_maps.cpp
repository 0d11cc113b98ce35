#include "src/convert/head_maps.h"

#include <algorithm>

#include "modules/attention/project/mix_heads.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Rows [n K, D] (or a bias [n K]) as [n, D, K] (or [n, K]), and back.
Tensor by_unit(const Tensor& rows, int64_t width) {
  const auto split = rows.unflatten(0, {-1, width});
  return rows.dim() == 2 ? split.transpose(1, 2) : split;
}
Tensor one_by_one(const Tensor& units) { return (units.dim() == 3 ? units.transpose(1, 2) : units).flatten(0, 1); }

/// The rows of queries and those of keys and values, whether they stand in one matrix (self-attention) or two.
std::pair<Tensor, Tensor> query_and_memory(const Attention& attention, const std::string& what) {
  if (attention.shape().cross)
    return {parameter_of(attention, "project.query_" + what), parameter_of(attention, "project.memory_" + what)};
  const auto all = parameter_of(attention, "project." + what);
  const auto queries = attention.shape().H() * attention.shape().head_width;
  return {all.narrow(0, 0, queries), all.narrow(0, queries, all.size(0) - queries)};
}

bool has_bias(const Attention& attention) {
  return attention.named_parameters().contains(attention.shape().cross ? "project.query_bias" : "project.bias");
}

/// {queries, keys, values} of each head.
std::vector<Tensor> of_heads(const Attention& attention, const std::string& what) {
  const auto& shape = attention.shape();
  const auto [query, memory] = query_and_memory(attention, what);
  const auto plain = [](const Tensor& x) {
    return x.to(torch::kCPU, torch::kDouble, /*non_blocking=*/false, /*copy=*/true);
  };
  const auto keys = shape.G() * shape.head_width;
  const auto& adapters = attention.options().then.items;
  const bool fuses = !adapters.empty() && adapters[0].type() == "fuse_groups";
  const auto spread = [&](const Tensor& own, const std::string& name) {  // of groups, to heads
    auto units = own;
    if (!adapters.empty() && attention.named_parameters().contains("then0." + name + "_mix")) {
      auto mix = plain(parameter_of(attention, "then0." + name + "_mix"));
      if (fuses) mix = mix * plain(parameter_of(attention, "then0." + name + "_same"));
      units = torch::tensordot(mix, units, {0}, {0});
      if (!fuses) return units;
    }
    return units.index_select(0, torch::tensor(shape.group_of, torch::kLong));
  };
  return {by_unit(plain(query), shape.head_width),
          spread(by_unit(plain(memory.narrow(0, 0, keys)), shape.head_width), "key"),
          spread(by_unit(plain(memory.narrow(0, keys, memory.size(0) - keys)), shape.value_width), "value")};
}

}  // namespace

Tensor parameter_of(const Attention& attention, const std::string& name) {
  const auto parameters = attention.named_parameters(), buffers = attention.named_buffers();
  const auto* found = parameters.find(name);
  if (!found) found = buffers.find(name);
  if (!found) throw std::logic_error("attention has no parameter " + name);
  return found->detach();
}

HeadMaps head_maps(const Attention& attention, Site site) {
  const auto& project = attention.options().project.type();
  if (project != "standard" && project != "grouped")
    throw UsageError("convert: " + to_string(site) + ": expected the project standard or grouped, got " + project);
  const auto& adapters = attention.options().then.items;
  if (adapters.size() > 1 ||
      (adapters.size() == 1 && adapters[0].type() != "mix_heads" && adapters[0].type() != "fuse_groups"))
    throw UsageError("convert: " + to_string(site) + ": expected no adapter but mix_heads or fuse_groups, got " +
                     adapters.back().type() + ", which changes what keys and values are");
  const auto weights = of_heads(attention, "weight");
  HeadMaps maps{weights[0], weights[1], weights[2], {}, {}, {}};
  if (!has_bias(attention)) return maps;
  const auto biases = of_heads(attention, "bias");
  maps.query_bias_HK = biases[0];
  maps.key_bias_GK = biases[1];
  maps.value_bias_GK = biases[2];
  return maps;
}

void set_head_maps(Attention& attention, const HeadMaps& maps) {
  const torch::NoGradGuard no_grad;
  const auto write = [&](const std::string& what, const Tensor& query, const Tensor& key, const Tensor& value) {
    const auto [into_query, into_memory] = query_and_memory(attention, what);
    into_query.copy_(one_by_one(query));
    into_memory.copy_(torch::cat({one_by_one(key), one_by_one(value)}));
  };
  write("weight", maps.query_HDK, maps.key_GDK, maps.value_GDK);
  if (maps.query_bias_HK.defined()) write("bias", maps.query_bias_HK, maps.key_bias_GK, maps.value_bias_GK);
}

}  // namespace headlab
