#include "src/convert/standard.h"

#include "modules/attention/project/standard.h"
#include "modules/tensor/torch.h"
#include "src/convert/head_maps.h"

namespace headlab {

AttentionOptions StandardConversion::options(const Attention& from, Site site) {
  auto options = from.options();
  const bool bias = head_maps(from, site).key_bias_GK.defined();
  options.project.choose("standard");
  options.project.as<StandardProjectOptions>().bias = bias;
  options.then.items.clear();
  return options;
}

nlohmann::ordered_json StandardConversion::weights(const Attention& from, Attention& to, Site site) {
  set_head_maps(to, head_maps(from, site));
  return nlohmann::ordered_json::object();
}

}  // namespace headlab
