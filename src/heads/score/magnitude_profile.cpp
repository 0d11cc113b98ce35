#include "src/heads/score/magnitude_profile.h"

#include <algorithm>

#include "modules/attention/attention.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// The norms of the rows (or columns) of one projection, by the head or the key/value group that they belong to.
struct RowNorms {
  HeadAxis axis;
  Tensor norms_UN;  // [units, rows of each], float64 on the CPU
};

/// Of the matrices that make queries, keys and values, and that mix the heads.
std::vector<RowNorms> row_norms(const Attention& attention) {
  const torch::NoGradGuard no_grad;
  std::vector<RowNorms> all;
  const auto parameters = attention.named_parameters();
  const auto& shape = attention.shape();
  for (const auto& axis : attention.axes().all()) {
    const bool projection = axis.parameter.rfind("project.", 0) == 0 || axis.parameter.rfind("mix.", 0) == 0;
    const auto* tensor = parameters.find(axis.parameter);
    if (!projection || !tensor || tensor->dim() < 2) continue;
    const auto units = axis.unit == Unit::head ? shape.H() : shape.G();
    const auto rows = tensor->detach()
                          .to(torch::kCPU, torch::kFloat64)
                          .narrow(axis.dim, axis.offset, units * axis.width)
                          .movedim(axis.dim, 0)
                          .flatten(1);
    all.push_back({axis, rows.norm(2, 1).view({units, axis.width})});
  }
  return all;
}

/// One number a unit -> one a head (position): a group's is shared among the heads that read it.
std::vector<double> by_head(const Tensor& of_unit, Unit unit, const AttentionShape& shape) {
  std::vector<double> values;
  for (std::size_t h = 0; h < shape.heads.size(); ++h) {
    if (unit == Unit::head) {
      values.push_back(of_unit[static_cast<int64_t>(h)].item<double>());
      continue;
    }
    if (shape.groups_shared) {  // every head reads every group
      values.push_back(of_unit.sum().item<double>() / static_cast<double>(shape.H()));
      continue;
    }
    const auto group = shape.group_of[h];
    const auto readers = std::count(shape.group_of.begin(), shape.group_of.end(), group);
    values.push_back(of_unit[group].item<double>() / static_cast<double>(readers));
  }
  return values;
}

/// The sum over an attention's projections of `of_unit`, and what `also` adds; for every head of the model.
HeadScores summed(const Model& model, const std::string& method, const std::function<Tensor(const RowNorms&)>& of_unit,
                  const std::function<double(const RowNorms&, int64_t head)>& also = {}) {
  HeadScores scores;
  scores.method = method;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto* attention = dynamic_cast<const Attention*>(mixer);
    if (!attention)
      throw UsageError(method + ": " + to_string(site) + " is no attention; its heads have no rows to compare");
    const auto& heads = attention->heads();
    for (const auto head : heads) scores.heads[{site.stack, site.layer, head}] = 0;
    if (heads.empty()) continue;
    for (const auto& rows : row_norms(*attention)) {
      const auto shares = by_head(of_unit(rows), rows.axis.unit, attention->shape());
      for (std::size_t h = 0; h < heads.size(); ++h)
        scores.heads[{site.stack, site.layer, heads[h]}] +=
            shares[h] + (also ? also(rows, static_cast<int64_t>(h)) : 0);
    }
  }
  return scores;
}

}  // namespace

void MagnitudeProfileOptions::describe(Fields& fields) {
  fields.add("threshold", threshold, "from how many deviations on a row stands out").at_least(0);
}

HeadScores MagnitudeProfile::score(Model& model, const Task&, uint64_t) {
  const auto standing_out = [&](const RowNorms& rows) {
    const auto all = rows.norms_UN.flatten();
    const auto middle = all.quantile(0.5);  // of an even number of rows: the mean of the two in the middle
    const auto deviation = 1.4826 * (all - middle).abs().quantile(0.5);
    // Rows all alike but for rounding have none that stands out.
    const auto z = (rows.norms_UN - middle) / deviation.clamp_min(1e-12 * middle.abs().item<double>() + 1e-300);
    return (z - options_.threshold).clamp_min(0).mean(1);
  };
  const auto by_output = [](const RowNorms& rows, int64_t head) {
    if (rows.axis.parameter != "mix.weight" || rows.axis.unit != Unit::head) return 0.0;
    const auto of_head = rows.norms_UN.norm(2, 1);
    const auto largest = of_head.max().item<double>();
    return largest > 0 ? 1e-9 * of_head[head].item<double>() / largest : 0.0;
  };
  return summed(model, "magnitude_profile", standing_out, by_output);
}

HeadScores NormScorer::score(Model& model, const Task&, uint64_t) {
  return summed(model, "norm", [](const RowNorms& rows) { return rows.norms_UN.norm(2, 1); });
}

}  // namespace headlab
