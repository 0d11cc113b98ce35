#include "src/convert/collaborative.h"

#include <cmath>

#include "modules/attention/project/collaborative.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"
#include "src/convert/head_maps.h"

namespace headlab {
namespace {

void check_scores(const Attention& from, Site site) {
  const auto& options = from.options();
  const auto refuse = [&](const std::string& what) {
    throw UsageError("convert: " + to_string(site) + ": expected " + what);
  };
  if (const auto& position = options.position.type(); position != "none" && position != "alibi" && position != "offset")
    refuse("positions that leave queries and keys as they are (none, alibi, offset), got " + position);
  if (options.weigh.score.type() != "dot_product") refuse("the score dot_product, got " + options.weigh.score.type());
}

}  // namespace

void CollaborativeConversionOptions::describe(Fields& fields) {
  fields.add("rank", parafac.rank, "dimensions of queries and keys that the heads share").at_least(1).required();
  fields.add("iterations", parafac.iterations, "most iterations of each start").at_least(1);
  fields.add("tolerance", parafac.tolerance, "stops where the relative error falls by less").at_least(0);
  fields.add("starts", parafac.starts, "tries: the last from separate heads, the others from normal numbers")
      .at_least(1);
  fields.add("scale", scale, "what scores are divided by: as before, or sqrt(rank / heads)")
      .one_of({"original", "shared"});
}

AttentionOptions CollaborativeConversion::options(const Attention& from, Site site) {
  check_scores(from, site);
  auto options = from.options();
  const auto maps = head_maps(from, site);
  const bool biased = maps.query_bias_HK.defined();
  const auto& normalise = options.weigh.normalise.type();
  if (biased && normalise != "softmax" && normalise != "sparsemax" &&
      maps.key_bias_GK.count_nonzero().item<int64_t>() > 0)
    throw UsageError("convert: " + to_string(site) +
                     ": expected softmax or sparsemax, which take the keys' bias away, got " + normalise);
  auto& score = options.weigh.score.as<DotProductOptions>();
  const auto factor = score.scale.value_or(1 / std::sqrt(static_cast<double>(from.shape().head_width)));
  score.scale.reset();
  options.head_width = options_.parafac.rank;
  options.value_width = from.shape().value_width;
  options.then.items.clear();
  options.project.choose("collaborative");
  auto& project = options.project.as<CollaborativeOptions>();
  project.content_bias = project.bias = biased;
  if (options_.scale == "original") project.divide_by = 1 / factor;
  return options;
}

nlohmann::ordered_json CollaborativeConversion::weights(const Attention& from, Attention& to, Site site) {
  const auto maps = head_maps(from, site);
  const auto found = parafac(maps.query_HDK, maps.key_GDK, options_.parafac, named_generator(seed_, to_string(site)));
  const auto write = [&](const std::string& name, const Tensor& value) {
    parameter_of(to, "project." + name).copy_(value);
  };
  write("query_weight", found.left_DR.t());
  write("key_weight", found.right_ER.t());
  write("mix", found.mix_HR);
  write("value_weight", maps.value_GDK.transpose(1, 2).flatten(0, 1));
  if (maps.query_bias_HK.defined()) {
    write("content", torch::matmul(maps.key_GDK, maps.query_bias_HK.unsqueeze(2)).squeeze(2));
    write("value_bias", maps.value_bias_GK.flatten());
  }
  return {{"error", found.error}, {"separate_error", found.separate_error}, {"iterations", found.iterations}};
}

}  // namespace headlab
