#include "src/measure/likeness.h"

#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/attention/gate/diversity.h"
#include "modules/tensor/torch.h"
#include "src/heads/head_set.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

/// Sums over batches of how alike heads are, by attention.
struct LikenessSums : Tap {
  explicit LikenessSums(const LikenessMeasureOptions& options)
      : options(options), place(place_of_likeness(options.on)) {}
  const LikenessMeasureOptions& options;
  At place;
  std::map<Site, Tensor> sum, pairs_HH, count;

  bool wants(At at, Site) const override { return at == place; }
  Tensor see(At at, Site site, Tensor value, const AttentionCall* call) override {
    const auto found =
        likeness(options.form, likeness_vectors(at, value, *call), likeness_mask(at, *call), /*with_pairs=*/true);
    if (!found.sum.defined()) return value;
    const auto add = [&](std::map<Site, Tensor>& all, const Tensor& more) {
      const auto wide = more.to(torch::kFloat64).cpu();
      all[site] = all[site].defined() ? all[site] + wide : wide;
    };
    add(sum, found.sum);
    add(pairs_HH, found.pairs_HH);
    add(count, found.count);
    return value;
  }
};

/// The gradient of each head's own entries of a parameter, in one order for all; empty: heads have none of it. Keys and
/// values are a head's own where no other head reads its group.
std::vector<Tensor> own_parts(const Mixer& mixer, const std::string& parameter, const Tensor& gradient) {
  const auto H = static_cast<int64_t>(mixer.heads().size());
  std::vector<int64_t> group_of;
  if (const auto* attention = dynamic_cast<const Attention*>(&mixer); attention && attention->shape().G() == H)
    group_of = attention->shape().group_of;
  std::vector<Tensor> parts(static_cast<std::size_t>(H));
  for (const auto& axis : mixer.axes().all()) {
    if (axis.parameter != parameter || (axis.unit == Unit::group && group_of.empty())) continue;
    for (int64_t h = 0; h < H; ++h) {
      const auto unit = axis.unit == Unit::head ? h : group_of[static_cast<std::size_t>(h)];
      const auto part = gradient.narrow(axis.dim, axis.offset + unit * axis.width, axis.width).flatten();
      auto& of_head = parts[static_cast<std::size_t>(h)];
      of_head = of_head.defined() ? torch::cat({of_head, part}) : part;
    }
  }
  return parts.front().defined() ? parts : std::vector<Tensor>{};
}

/// For each head the mean over the others of a matrix.
void add_heads(Json& heads, Site site, const std::vector<int64_t>& names, const Tensor& of_pairs_HH, const char* key) {
  if (of_pairs_HH.size(0) != static_cast<int64_t>(names.size())) return;  // groups that heads share
  const auto others = (of_pairs_HH.sum(1) - of_pairs_HH.diagonal()) / static_cast<double>(names.size() - 1);
  for (std::size_t h = 0; h < names.size(); ++h)
    heads[to_string(HeadId{site.stack, site.layer, names[h]})] = {
        {key, others[static_cast<int64_t>(h)].item<double>()}};
}

}  // namespace

void LikenessMeasureOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("on", on, "what of heads is compared").one_of(likeness_places());
  fields.add("form", form, "how alike two heads are: cosine, its square, or the squared correlation over time")
      .one_of(likeness_forms());
}

Json LikenessMeasure::measure(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "likeness", "outputs");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  LikenessSums sums(options_);
  for (const auto& chosen : options_.batches(task)) {
    Forward run;
    run.taps = {&sums};
    model.hidden(task.batch(options_.split, chosen, model.device()).inputs, run);
  }
  Json attentions = Json::object(), heads = Json::object();
  double total = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    if (!sums.sum.count(site)) continue;
    const auto count = sums.count[site].item<double>(), mean = sums.sum[site].item<double>() / count;
    attentions[to_string(site)] = mean;
    total += mean;
    add_heads(heads, site, mixer->heads(), sums.pairs_HH[site] / count, "likeness");
  }
  if (attentions.empty()) throw UsageError("likeness: expected an attention of at least two heads");
  return {{"likeness", total / static_cast<double>(attentions.size())}, {"attentions", attentions}, {"heads", heads}};
}

Json HeadGradientsMeasure::measure(Model& model, const Task& task, uint64_t seed) {
  const Mode evaluating(model, false);
  std::map<Site, Tensor> gradient_HN;  // of each head's own parameters, one after another
  for (const auto& chosen : options_.batches(task)) {
    const auto batch = task.batch(options_.split, chosen, model.device());
    Forward run;
    run.noise_seed = seed;
    const auto loss = token_loss(model, batch, 0, run).sum;
    for (const auto& [site, mixer] : model.mixers()) {
      const auto H = static_cast<int64_t>(mixer->heads().size());
      if (H < 2) continue;
      std::vector<std::vector<Tensor>> parts(static_cast<std::size_t>(H));
      for (const auto& item : mixer->named_parameters()) {
        if (!item.value().requires_grad()) continue;
        const auto gradient =
            torch::autograd::grad({loss}, {item.value()}, {}, /*retain_graph=*/true, false, /*allow_unused=*/true)
                .front();
        if (!gradient.defined()) continue;
        const auto own = own_parts(*mixer, item.key(), gradient);
        for (std::size_t h = 0; h < own.size(); ++h) parts[h].push_back(own[h]);
      }
      if (parts.front().empty()) continue;
      std::vector<Tensor> rows;
      for (const auto& of_head : parts) rows.push_back(torch::cat(of_head));
      const auto all = torch::stack(rows).to(torch::kFloat64).cpu();
      auto& sum = gradient_HN[site];
      sum = sum.defined() ? sum + all : all;
    }
  }
  Json attentions = Json::object(), heads = Json::object();
  double cosine = 0, squared = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto found = gradient_HN.find(site);
    if (found == gradient_HN.end()) continue;
    const auto& gradient = found->second;
    const auto unit = gradient / gradient.square().sum(1, /*keepdim=*/true).sqrt().clamp_min(1e-30);
    const auto of_pairs = torch::mm(unit, unit.t());
    const auto off = of_pairs - torch::diag(of_pairs.diagonal());
    const auto pairs = static_cast<double>(of_pairs.size(0) * (of_pairs.size(0) - 1));
    const auto mean = off.sum().item<double>() / pairs, mean_square = off.square().sum().item<double>() / pairs;
    attentions[to_string(site)] = {{"cosine", mean}, {"squared", mean_square}};
    cosine += mean;
    squared += mean_square;
    add_heads(heads, site, mixer->heads(), of_pairs, "cosine");
  }
  if (attentions.empty()) throw UsageError("head_gradients: expected an attention of at least two heads that learn");
  const auto count = static_cast<double>(attentions.size());
  return {{"cosine", cosine / count}, {"squared", squared / count}, {"attentions", attentions}, {"heads", heads}};
}

}  // namespace headlab
