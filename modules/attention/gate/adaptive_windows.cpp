#include "modules/attention/gate/adaptive_windows.h"

#include <algorithm>
#include <limits>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// What is summed over tokens for each head. Of q, k and v: the means over a head's entries of |x|, x and x^2.
struct Of {
  enum : int {
    tokens,
    q_absolute,
    q_plain,
    q_square,
    k_absolute,
    k_plain,
    k_square,
    v_absolute,
    v_plain,
    v_square,
    entropy,
    rows,
    norm,
    all
  };
};

std::string window_stats(Site site) { return to_string(site) + "/adaptive_windows"; }

/// Sums up one pass, and leaves it in its stats when z, the last of what it sees, has come.
class HeadObserver : public Tap {
 public:
  HeadObserver(Site site, std::vector<int64_t> group_of, const AttentionCall& call)
      : site_(site), group_of_(std::move(group_of)), sums_HN_(Of::all) {
    const auto& mask = call.see.query_mask_BT;  // of a self-attention: its keys are the same tokens
    if (mask.defined()) real_B1T_ = mask.unsqueeze(1).to(torch::kFloat64);
  }

  bool wants(At at, Site site) const override {
    const bool ours = at == At::q || at == At::k || at == At::v || at == At::scores || at == At::weights || at == At::z;
    return ours && site.stack == site_.stack && site.layer == site_.layer;
  }

  Tensor see(At at, Site, Tensor value, const AttentionCall* call) override {
    torch::NoGradGuard no_grad;
    const auto x = value.detach();
    if (at == At::q) moments(Of::q_absolute, x);
    if (at == At::k) moments(Of::k_absolute, of_heads(x));
    if (at == At::v) moments(Of::v_absolute, of_heads(x));
    if (at == At::scores) visible_BHT_ = x.gt(-std::numeric_limits<double>::infinity()).sum(-1);
    if (at == At::weights) {
      const auto w = x.to(at_least_float(x.scalar_type()));
      const auto found = -(w * w.clamp_min(std::numeric_limits<float>::min()).log()).sum(-1).to(torch::kFloat64);
      const auto several = visible_BHT_.gt(1);
      sums_HN_[Of::entropy] =
          total((found / visible_BHT_.to(torch::kFloat64).log()).masked_fill(several.logical_not(), 0));
      sums_HN_[Of::rows] = total(several.to(torch::kFloat64));
    }
    if (at == At::z) {
      const auto norms = x.to(torch::kFloat64).square().sum(-1).sqrt();
      sums_HN_[Of::norm] = total(norms);
      sums_HN_[Of::tokens] = total(torch::ones_like(norms));
      auto& sums = call->run.stats[window_stats(site_)];
      const auto mine = torch::stack(sums_HN_, 1);
      sums = sums.defined() ? sums + mine : mine;
    }
    return value;
  }

 private:
  Tensor of_heads(const Tensor& x_BGSK) const {
    std::vector<Tensor> heads;
    for (auto group : group_of_) heads.push_back(x_BGSK.select(1, group));
    return torch::stack(heads, 1);
  }
  /// Over the real tokens: [H].
  Tensor total(const Tensor& x_BHT) const {
    return (real_B1T_.defined() ? x_BHT * real_B1T_ : x_BHT).sum(at::IntArrayRef{0, 2});
  }
  void moments(int first, const Tensor& x_BHTK) {
    const auto x = x_BHTK.to(torch::kFloat64);
    sums_HN_[first] = total(x.abs().mean(-1));
    sums_HN_[first + 1] = total(x.mean(-1));
    sums_HN_[first + 2] = total(x.square().mean(-1));
  }
  Site site_;
  std::vector<int64_t> group_of_;
  std::vector<Tensor> sums_HN_;
  Tensor real_B1T_, visible_BHT_;
};

}  // namespace

void AdaptiveWindowsOptions::describe(Fields& fields) {
  fields.add("set", set, "windows to choose from, ascending: keys a head sees, itself included")
      .at_least(1)
      .unit("tokens")
      .required();
  fields.add("interval", interval, "optimiser steps from one measurement, and decision, to the next")
      .at_least(1)
      .unit("steps");
  fields.add("warmup", warmup, "optimiser steps in which every head sees all").at_least(0).unit("steps");
  fields.add("sim", sim, "cosine of features from which a head joins a group").at_least(-1).at_most(1);
  fields.add("super", super, "the same for groups of groups").at_least(-1).at_most(1);
  fields.add("max_depth", max_depth, "levels of groups at most").at_least(1);
  fields.add("ema", ema, "share of the old in the moving average of features").at_least(0).below(1);
  fields
      .add("controller_grad", controller_grad,
           "how the controller learns: not at all, or by a straight-through gradient")
      .one_of({"none", "ste"});
  fields.add("siblings", siblings, "how groups of one parent choose: each for itself, or two and two")
      .one_of({"alone", "pairs"});
  fields.add("index_ema", index_ema, "share of the new in the moving average of a head's choices")
      .above(0)
      .at_most(1)
      .means("absent: the choice itself");
}

void AdaptiveWindowsOptions::rules(Problems& problems) const {
  if (set.empty()) problems.add("set", "expected at least one window");
  for (std::size_t i = 1; i < set.size(); ++i)
    if (set[i] <= set[i - 1])
      problems.add("set[" + std::to_string(i) + "]", "expected more than the window before it (" +
                                                         std::to_string(set[i - 1]) + "), since windows ascend; got " +
                                                         std::to_string(set[i]));
}

AdaptiveWindows::AdaptiveWindows(const AdaptiveWindowsOptions& options, Shape shape)
    : HeldWindows("adaptive_windows", std::move(shape)), options_(options) {
  const auto weights = [&](const std::string& name, at::IntArrayRef sizes) {
    const auto zeros = torch::zeros(sizes);
    return options_.controller_grad == "ste" ? register_parameter(name, zeros) : register_buffer(name, zeros);
  };
  const auto choices = static_cast<int64_t>(options_.set.size());
  hidden_weight = weights("hidden_weight", {hidden, features});
  hidden_bias = weights("hidden_bias", {hidden});
  choice_weight = weights("choice_weight", {choices, hidden});
  choice_bias = weights("choice_bias", {choices});
  if (options_.siblings == "pairs") {
    joint_hidden_weight = weights("joint_hidden_weight", {joint_hidden, 2 * features});
    joint_hidden_bias = weights("joint_hidden_bias", {joint_hidden});
    joint_choice_weight = weights("joint_choice_weight", {choices * choices, joint_hidden});
    joint_choice_bias = weights("joint_choice_bias", {choices * choices});
    sibling = register_buffer("sibling", torch::full({shape_->H()}, -1, torch::kLong));
  }
  if (options_.index_ema) index = register_buffer("index", torch::full({shape_->H()}, -1, torch::kFloat64));
  steps = register_buffer("steps", torch::zeros({2}, torch::kLong));
  feature = register_buffer("feature", torch::zeros({shape_->H(), features}, torch::kFloat64));
  group = register_buffer("group", torch::full({shape_->H()}, -1, torch::kLong));
}

void AdaptiveWindows::axes(HeadAxes axes) const {
  HeldWindows::axes(axes);
  axes.head("feature", 0, 1);
  axes.head("group", 0, 1);
  if (sibling.defined()) axes.head("sibling", 0, 1);
  if (index.defined()) axes.head("index", 0, 1);
}

void AdaptiveWindows::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(hidden_weight, features, hidden, generator("hidden_weight"));
  xavier_uniform(choice_weight, hidden, static_cast<int64_t>(options_.set.size()), generator("choice_weight"));
  hidden_bias.zero_();
  choice_bias.zero_();
  if (joint_hidden_weight.defined()) {
    xavier_uniform(joint_hidden_weight, 2 * features, joint_hidden, generator("joint_hidden_weight"));
    xavier_uniform(joint_choice_weight, joint_hidden, joint_choice_bias.size(0), generator("joint_choice_weight"));
    joint_hidden_bias.zero_();
    joint_choice_bias.zero_();
    sibling.fill_(-1);
  }
  if (index.defined()) index.fill_(-1);
  steps.zero_();
  feature.zero_();
  group.fill_(-1);
  window.zero_();
}

Tensor AdaptiveWindows::controller(const Tensor& features_NF) const {
  const auto h = torch::gelu(torch::linear(features_NF.to(hidden_weight.options()), hidden_weight, hidden_bias));
  return torch::linear(h, choice_weight, choice_bias);
}

Tensor AdaptiveWindows::pair_controller(const Tensor& first_NF, const Tensor& second_NF) const {
  const auto both = torch::cat({first_NF, second_NF}, -1).to(joint_hidden_weight.options());
  const auto h = torch::gelu(torch::linear(both, joint_hidden_weight, joint_hidden_bias));
  const auto choices = static_cast<int64_t>(options_.set.size());
  return torch::linear(h, joint_choice_weight, joint_choice_bias).view({-1, choices, choices});
}

bool AdaptiveWindows::measures_now() const { return (counts_.of(steps)[0] + 1) % options_.interval == 0; }

std::unique_ptr<Tap> AdaptiveWindows::observer(const AttentionCall& call, const std::vector<int64_t>& group_of) {
  if (!is_training() || call.state || !measures_now()) return nullptr;
  return std::make_unique<HeadObserver>(call.site, group_of, call);
}

Tensor AdaptiveWindows::chosen_probability() const {
  // The features have not moved since the decision: both come with a measurement.
  const auto mean_of = [&](const Tensor& of_head) {  // of the heads of a group, for each head
    const auto mates_HH = of_head.unsqueeze(1).eq(group).to(torch::kFloat64);
    return mates_HH.matmul(feature) / mates_HH.sum(1, true).clamp_min(1);
  };
  const auto own = mean_of(group);
  auto p = controller(own).softmax(-1);
  if (sibling.defined()) {
    const auto other = mean_of(torch::where(sibling.lt(0), -2 - sibling, sibling));
    const auto second = sibling.lt(-1).unsqueeze(-1);
    const auto pairs =
        pair_controller(torch::where(second, other, own), torch::where(second, own, other)).flatten(1).softmax(-1);
    const auto of_both = pairs.view({-1, p.size(1), p.size(1)});
    p = torch::where(sibling.eq(-1).unsqueeze(-1), p, torch::where(second, of_both.sum(1), of_both.sum(2)));
  }
  std::vector<Tensor> in_force;
  for (auto one : options_.set) in_force.push_back(window.eq(one));
  return (p * torch::stack(in_force, 1)).sum(1);  // 0 for heads without a window yet
}

Tensor AdaptiveWindows::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall&) {
  if (options_.controller_grad != "ste" || !at::GradMode::is_enabled()) return z_BHTK;  // z stays as it is anyway
  const auto p = chosen_probability();
  return z_BHTK * (1 + (p - p.detach())).to(z_BHTK.scalar_type()).unsqueeze(-1).unsqueeze(-1);
}

void AdaptiveWindows::update(Site site, const std::map<std::string, Tensor>& stats) {
  if (const auto found = stats.find(window_stats(site)); found != stats.end()) learn(found->second);
  steps[0] += 1;
  const auto& counts = counts_.of(steps);
  if (counts[0] >= options_.warmup && counts[0] % options_.interval == 0 && counts[1] > 0 && shape_->H() > 0) decide();
}

void AdaptiveWindows::learn(const Tensor& sums) {
  const auto of = [&](int which) { return sums.select(1, which); };
  const auto several = of(Of::rows).clamp_min(1), count = of(Of::tokens).clamp_min(1);
  std::vector<Tensor> now;
  for (const int first : {int(Of::q_absolute), int(Of::k_absolute), int(Of::v_absolute)}) {
    now.push_back(of(first) / count);
    const auto mean = of(first + 1) / count;
    now.push_back((of(first + 2) / count - mean.square()).clamp_min(0).sqrt());
  }
  now.push_back(of(Of::entropy) / several);
  now.push_back(of(Of::norm) / count);
  now.push_back(window.eq(0).to(torch::kFloat64) +
                window.to(torch::kFloat64) / static_cast<double>(options_.set.back()));
  const auto now_HF = torch::stack(now, 1);
  if (counts_.of(steps)[1] == 0)
    feature.copy_(now_HF);
  else
    feature.mul_(options_.ema).add_(now_HF, 1 - options_.ema);
  steps[1] += 1;
}

void AdaptiveWindows::decide() {
  const auto here = feature.to(torch::kCPU), before = group.to(torch::kCPU);
  std::vector<HeadFeatures> heads;
  for (int64_t h = 0; h < here.size(0); ++h)
    heads.emplace_back(here[h].data_ptr<double>(), here[h].data_ptr<double>() + here.size(1));
  const std::vector<int64_t> former(before.data_ptr<int64_t>(), before.data_ptr<int64_t>() + before.numel());
  GroupingRules rules;
  rules.sim = options_.sim;
  rules.super = options_.super;
  rules.max_depth = options_.max_depth;
  const auto levels = group_heads(heads, former, rules);
  std::vector<std::vector<int64_t>> chosen;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    std::vector<Tensor> means;
    for (const auto& mean : levels[l].means) means.push_back(torch::tensor(mean, torch::kFloat64));
    const auto mean_NF = torch::stack(means).to(hidden_weight.device());
    const auto best = controller(mean_NF).argmax(-1).to(torch::kCPU);
    chosen.emplace_back(best.data_ptr<int64_t>(), best.data_ptr<int64_t>() + best.numel());
    if (!sibling.defined()) continue;
    std::vector<int64_t> sibling_of(means.size(), -1);
    for (const auto& [first, second] : sibling_pairs(levels, l)) {
      const auto both =
          pair_controller(mean_NF.narrow(0, first, 1), mean_NF.narrow(0, second, 1)).argmax().item<int64_t>();
      const auto choices = static_cast<int64_t>(options_.set.size());
      chosen.back()[first] = both / choices;
      chosen.back()[second] = both % choices;
      sibling_of[first] = second;
      sibling_of[second] = -2 - first;
    }
    if (l > 0) continue;
    std::vector<int64_t> of_heads;
    for (auto one : levels[0].group_of) of_heads.push_back(sibling_of[one]);
    sibling.copy_(torch::tensor(of_heads, torch::kLong));
  }
  auto choices = torch::tensor(clamped_choices(levels, chosen), torch::kFloat64).to(window.device());
  if (index.defined()) {
    index.copy_(torch::where(index.lt(0), choices, index + *options_.index_ema * (choices - index)));
    choices = index.round();
  }
  window.copy_(torch::tensor(options_.set, torch::kLong).to(window.device()).index_select(0, choices.to(torch::kLong)));
  group.copy_(torch::tensor(levels.front().group_of, torch::kLong));
}

}  // namespace headlab
