#include "src/convert/fuse_groups.h"

#include <algorithm>

#include "modules/attention/project/fuse_groups.h"
#include "modules/attention/project/standard.h"
#include "modules/tensor/torch.h"
#include "src/convert/head_maps.h"

namespace headlab {

void FuseGroupsConversionOptions::describe(Fields& fields) {
  grouping.describe(fields);
  fields.add("fuse_steps", fuse_steps, "optimiser steps until the heads of a group are to be one")
      .at_least(1)
      .unit("steps");
  fields.add("lr_lambda", lr_lambda, "how fast the multipliers of the fusion loss rise").at_least(0);
}

AttentionOptions FuseGroupsConversion::options(const Attention& from, Site site) {
  auto options = from.options();
  const bool bias = head_maps(from, site).key_bias_GK.defined();
  options.project.choose("standard");
  options.project.as<StandardProjectOptions>().bias = bias;
  options.then.items = {Choice(adapter_catalogue, "fuse_groups")};
  auto& fuse = options.then.items[0].as<FuseGroupsOptions>();
  fuse.k_map = groups_.at(site).keys;
  fuse.v_map = groups_.at(site).values;
  fuse.steps = options_.fuse_steps;
  fuse.lr_lambda = options_.lr_lambda;
  return options;
}

nlohmann::ordered_json FuseGroupsConversion::weights(const Attention& from, Attention& to, Site site) {
  set_head_maps(to, head_maps(from, site));
  for (const auto& module : to.modules(/*include_self=*/false))  // what `from` had of equal names was copied
    if (auto* fuse = dynamic_cast<FuseGroups*>(module.get())) fuse->draw({});
  const auto count = [](const std::vector<int64_t>& map) { return *std::max_element(map.begin(), map.end()) + 1; };
  return {{"key_groups", count(groups_.at(site).keys)}, {"value_groups", count(groups_.at(site).values)}};
}

}  // namespace headlab
