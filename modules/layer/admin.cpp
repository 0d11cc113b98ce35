#include "modules/layer/admin.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

// What a profiling pass leaves in stats: that it is one, the square of each chain's next omega, and for each omega that
// it met where it is to be set, and its square.
const std::string admin_mark = "admin", admin_next = "admin/next/", admin_scale = "admin/scale/",
                  admin_square = "admin/square/";

Tensor profiled_sum(const Tensor& x, const Tensor& made, const SublayerNorms& norms, Forward& run) {
  auto& next = run.stats[admin_next + norms.chain];
  const auto square = next.defined() ? next : torch::ones({}, x.options());
  const auto name = norms.chain + "/" + std::to_string(run.stats.size());
  run.stats[admin_scale + name] = norms.scale_D;
  run.stats[admin_square + name] = square;
  const auto kept = x * square.sqrt();
  next = kept.var(/*unbiased=*/false) + made.var(/*unbiased=*/false);
  return kept + made;
}

}  // namespace

Tensor Admin::join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
                   const std::function<Tensor(const Tensor&)>& f, Forward& run) const {
  const auto made = drop(f(x), dropout.p, training, dropout.kind);
  if (run.stats.count(admin_mark)) return norms.norm->normalise(profiled_sum(x, made, norms, run));
  return norms.norm->normalise(relevance::sum(relevance::through(x, x * norms.scale_D), made));
}

void begin_profile(Forward& run) { run.stats[admin_mark] = torch::ones({}); }

bool apply_profile(const std::vector<Forward>& passes) {
  const torch::NoGradGuard no_grad;
  std::vector<std::pair<Tensor, Tensor>> set;  // scale, square
  for (const auto& [name, scale_D] : passes.empty() ? decltype(Forward::stats)() : passes.front().stats) {
    if (name.compare(0, admin_scale.size(), admin_scale) != 0) continue;
    if (!scale_D.eq(1).all().item<bool>()) return false;
    auto square = torch::zeros({}, scale_D.options());
    for (const auto& pass : passes) square = square + pass.stats.at(admin_square + name.substr(admin_scale.size()));
    set.emplace_back(scale_D, square / static_cast<double>(passes.size()));
  }
  for (auto& [scale_D, square] : set) scale_D.copy_(square.sqrt().expand_as(scale_D));
  return !set.empty();
}

}  // namespace headlab
