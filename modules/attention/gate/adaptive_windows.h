#pragma once

#include "modules/attention/gate/head_groups.h"
#include "modules/attention/gate/held_windows.h"
#include "modules/tensor/updated.h"

namespace headlab {

struct AdaptiveWindowsOptions : Described<AdaptiveWindowsOptions> {
  std::vector<int64_t> set;
  int64_t interval = 10, warmup = 200, max_depth = 4;
  double sim = 0.72, super = 0.76, ema = 0.9;
  std::string controller_grad = "none", siblings = "alone";
  std::optional<double> index_ema;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Windows that training chooses for groups of like heads.          (2608.19203; details by the authors' code)
///
/// Every `interval` optimiser steps nine features of each head are measured on the step's batches, padding left out:
///   mean |q|, std q, mean |k|, std k, mean |v|, std v    over tokens and entries; k and v are those that the head
///   reads entropy    of its weights over that of equal weights, -sum w log w / log n, mean over queries that see n > 1
///   keys norm       of its output z_h before the gates, mean over tokens usage      W_h / the largest window of the
///   set; 1 while it has none          (our reading)
/// They are averaged as ema f + (1 - ema) new, the first as it is, without gradient. From `warmup` steps on (before
/// them every head sees all) group_heads() then groups the heads, the controller
///   Linear(9, 16) - GELU - Linear(16, |set|), argmax
/// chooses a window for each group at each level from its mean features, no group a longer one than its parent, and a
/// head gets its group's.
///
/// siblings: groups of one parent (of the last level: all its groups) choose each for itself ("alone"), or two and two
/// in their order by their features side by side ("pairs"; one that is left over, alone):
///   Linear(18, 64) - GELU - Linear(64, |set|^2), argmax over both their windows
/// (that the final version of the paper's code scores pairs is known, what goes in is inferred).
/// index_ema e: a head's choice c, the number of a window in the set, moves an average a = (1 - e) a + e c, the first
/// as it is, and the head gets the window nearest to a (inferred).
///
/// controller_grad: the features have no gradient and an argmax passes none, so that the controller of the paper's code
/// stays as it was drawn ("none"; its weights are buffers then). "ste": z_h is multiplied by 1 + p - stop(p), p the
/// controller's probability of the window in force (of a pair: summed over its sibling's windows): z is the same to the
/// bit, and the controller learns to choose it more often where more of the head would lower the loss (inferred).
///
/// A pass changes nothing: sums leave in Forward::stats, and update() makes features, groups and windows of them.
/// Weights are looked at in the steps that measure alone; all others run the fused kernel. In evaluation, and in an
/// exported file, the windows are those of the last decision.
class AdaptiveWindows : public HeldWindows, public Updated {
 public:
  static constexpr int64_t features = 9, hidden = 16, joint_hidden = 64;
  AdaptiveWindows(const AdaptiveWindowsOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  std::unique_ptr<Tap> observer(const AttentionCall& call, const std::vector<int64_t>& group_of) override;
  void axes(HeadAxes axes) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;
  void update(Site site, const std::map<std::string, Tensor>& stats) override;

  /// Logits of the windows of the set for features_NF: [N, |set|], of the controller's type.
  Tensor controller(const Tensor& features_NF) const;
  /// Logits for pairs of siblings, [N, |set|, |set|]: the first one's window, the second one's.
  Tensor pair_controller(const Tensor& first_NF, const Tensor& second_NF) const;
  /// Whether the pass of a training step made now would be measured.
  bool measures_now() const;

 private:
  Tensor chosen_probability() const;  // [H]
  void learn(const Tensor& sums);
  void decide();
  AdaptiveWindowsOptions options_;
  Tensor hidden_weight, hidden_bias, choice_weight, choice_bias;  // the controller
  Tensor joint_hidden_weight, joint_hidden_bias, joint_choice_weight,
      joint_choice_bias;  // of pairs; undefined: there are none
  Tensor steps;           // long [2]: optimiser steps, and how many of them were measured
  Tensor feature;         // float64 [H, features]
  Tensor group;           // long [H]: of level 0, by the last decision; -1 before it
  Tensor sibling;  // with pairs, long [H]: the group that its group chose with, from 0, where its own stood first; -2 -
                   // g where it stood second; -1: none
  Tensor index;    // with index_ema, float64 [H]: the average of a head's choices; -1 before the first
  mutable OnHost<int64_t> counts_;
};

}  // namespace headlab
