// What must hold of every entry of every slot, each inside a small model. A new entry needs one row in the table below.
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/diversity.h"
#include "modules/attention/gate/dynamic_importance.h"
#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/heads_by_length.h"
#include "modules/attention/gate/l0_round.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/attention/gate/random_windows.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/scalar.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/agreement.h"
#include "modules/attention/mix/capsules.h"
#include "modules/attention/mix/concatenate.h"
#include "modules/attention/mix/grouped_average.h"
#include "modules/attention/mix/low_rank.h"
#include "modules/attention/position/adarope.h"
#include "modules/attention/position/alibi.h"
#include "modules/attention/position/offset.h"
#include "modules/attention/position/rope.h"
#include "modules/attention/position/transformer_xl.h"
#include "modules/attention/project/collaborative.h"
#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/fuse_groups.h"
#include "modules/attention/project/head_embeddings.h"
#include "modules/attention/project/knocking.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/persistent.h"
#include "modules/attention/project/simulated.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/additive.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/layer/conformer.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/mixer/ngram.h"
#include "modules/mixer/ngram_and_attention.h"
#include "src/checkpoint/safetensors.h"
#include "src/spec/dump.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"

namespace headlab {
namespace {

// The table -----------------------------------------------------------------------------------------------------------

/// What can't be asked of a row, and why; empty: it is asked.
struct Exempt {
  std::string cross = {};           // why the entry stands in self-attentions alone
  std::string picks = {};           // why a rounded input may give something else
  std::string equal_bits = {};      // why causality holds to rounding only
  std::string gradients = {};       // why differences of the output are not the gradients
  std::string z_dot_grad_z = {};    // why z . dL/dz before the gates is not the gradient of a head's scale
  std::string zeroed = {};          // why zeros in the place of some heads' z are not these heads scaled by 0
  std::string shares = {};          // why the output is no sum over heads, so that there is no share of each
  std::string axes = {};            // why no stretch of a parameter is told as a head's
  std::string fused = {};           // why LibTorch's fused kernel can't do it
  std::string fused_training = {};  // why not while it learns
};

struct Row {
  std::string entry;  // what it tries: "gate.windows"
  std::string with;   // and how
  Choice model;
  std::optional<AttentionOptions> attention;  // where the entry is part of an attention
  Exempt exempt = {};
  std::string name() const { return entry + (with.empty() ? "" : " (" + with + ")"); }
};

Choice gate(const std::string& type) { return Choice(gate_catalogue, type); }

Choice windows(std::vector<int64_t> of) {
  auto choice = gate("windows");
  choice.as<WindowsOptions>().windows = std::move(of);
  return choice;
}

Choice role_masks(std::vector<std::string> of) {
  auto choice = gate("role_masks");
  choice.as<RoleMasksOptions>().roles = std::move(of);
  return choice;
}

Choice random_windows(std::vector<int64_t> set) {
  auto choice = gate("random_windows");
  choice.as<RandomWindowsOptions>().set = std::move(set);
  return choice;
}

Choice shuffled_windows(std::vector<int64_t> of) {
  auto choice = gate("shuffled_windows");
  choice.as<ShuffledWindowsOptions>().windows = std::move(of);
  return choice;
}

Choice adaptive_windows(const std::string& controller_grad) {
  auto choice = gate("adaptive_windows");
  choice.as<AdaptiveWindowsOptions>().set = {2, 4};
  choice.as<AdaptiveWindowsOptions>().controller_grad = controller_grad;
  return choice;
}

Choice hard_concrete() {
  auto choice = gate("hard_concrete");
  choice.as<HardConcreteOptions>().initial = 0.3;
  choice.as<HardConcreteOptions>().penalty = 0.1;
  return choice;
}

void grouped(AttentionOptions& a, int64_t groups) {
  a.project.choose("grouped");
  a.project.as<GroupedProjectOptions>().groups = groups;
}

void experts(AttentionOptions& a, const std::string& norm = "none") {
  a.project.choose("experts");
  a.mix.choose("experts");
  auto route = gate("route_experts");
  route.as<RouteExpertsOptions>().norm = norm;
  a.gates.items = {route};
}

void head_embeddings(AttentionOptions& a, const std::string& op) {
  a.project.choose("head_embeddings");
  a.project.as<HeadEmbeddingsOptions>().op = op;
}

void collaborative(AttentionOptions& a, const std::function<void(CollaborativeOptions&)>& change = {}) {
  a.head_width = 6;
  a.value_width = 2;
  a.project.choose("collaborative");
  if (change) change(a.project.as<CollaborativeOptions>());
}

void simulated(AttentionOptions& a, int64_t components, const std::string& cache) {
  a.project.choose("simulated");
  a.project.as<SimulatedOptions>().components = components;
  a.project.as<SimulatedOptions>().cache = cache;
}

void grouped_average(AttentionOptions& a, int64_t concatenated) {
  a.mix.choose("grouped_average");
  a.mix.as<GroupedAverageOptions>().concatenated = concatenated;
}

void mix_heads(AttentionOptions& a, std::vector<std::string> mix) {
  Choice choice(adapter_catalogue, "mix_heads");
  choice.as<MixHeadsOptions>().mix = std::move(mix);
  a.then.items = {choice};
}

void decoupled(AttentionOptions& a, std::vector<int64_t> k_map, std::vector<int64_t> v_map) {
  a.project.choose("decoupled");
  a.project.as<DecoupledProjectOptions>().k_map = std::move(k_map);
  a.project.as<DecoupledProjectOptions>().v_map = std::move(v_map);
}

void fuse_groups(AttentionOptions& a, std::vector<int64_t> k_map, std::vector<int64_t> v_map) {
  a.then.items.emplace_back(adapter_catalogue, "fuse_groups");
  a.then.items.back().as<FuseGroupsOptions>().k_map = std::move(k_map);
  a.then.items.back().as<FuseGroupsOptions>().v_map = std::move(v_map);
}

Choice knocking(const std::string& kind, std::vector<std::string> on = {"v"}) {
  Choice choice(adapter_catalogue, "knocking");
  choice.as<KnockingOptions>().kind = kind;
  choice.as<KnockingOptions>().on = std::move(on);
  return choice;
}

void persistent(AttentionOptions& a) {
  a.then.items.emplace_back(adapter_catalogue, "persistent");
  a.then.items.back().as<PersistentOptions>().vectors = 3;
}

Choice l0_round(bool scale_output) {
  auto choice = gate("l0_round");
  auto& options = choice.as<L0RoundOptions>();
  options.initial = 0.3;
  options.penalty = 0.1;
  options.scale_output = scale_output;
  return choice;
}

Choice diversity(const std::string& on, const std::string& form) {
  auto choice = gate("diversity");
  choice.as<DiversityOptions>().on = on;
  choice.as<DiversityOptions>().form = form;
  return choice;
}

void adarope(AttentionOptions& a, const std::function<void(AdaRopeOptions&)>& change = {}) {
  a.position.choose("adarope");
  auto& options = a.position.as<AdaRopeOptions>();
  options.train_length = 3;
  options.growth = 0.2;
  if (change) change(options);
}

Choice dynamic_importance(bool rescale, double weight) {
  auto choice = gate("dynamic_importance");
  choice.as<DynamicImportanceOptions>().rescale = rescale;
  choice.as<DynamicImportanceOptions>().weight = weight;
  return choice;
}

const std::string no_positions_between = "a cross-attention's queries and keys share no positions";
const Exempt self_alone{.cross = no_positions_between};
const Exempt routed{.equal_bits =
                        "rows are multiplied expert by expert: how many stand in one product depends on all tokens"};

std::vector<Row> attention_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& entry, const std::string& with,
                       const std::function<void(AttentionOptions&)>& change, const Exempt& exempt = {}) {
    auto attention = small_attention();
    change(attention);
    const auto options = small_encoder_decoder(attention, exempt.cross.empty() ? attention : small_attention());
    rows.push_back({entry, with, model_choice("encoder_decoder", options), attention, exempt});
  };
  using A = AttentionOptions;
  add("project.standard", "", [](A&) {});
  add("project.standard", "no bias, heads wider than their share", [](A& a) {
    a.head_width = 3;
    a.project.as<StandardProjectOptions>().bias = false;
  });
  for (int64_t width : {1, 3})
    add("project.standard", "values of width " + std::to_string(width), [&](A& a) { a.value_width = width; });
  for (int64_t groups : {1, 2, 4})
    add("project.grouped", std::to_string(groups) + " groups", [&](A& a) { grouped(a, groups); });
  add(
      "project.grouped", "2 groups, values of width 5, with rope",
      [](A& a) {
        grouped(a, 2);
        a.value_width = 5;
        a.position.choose("rope");
      },
      self_alone);
  add("project.experts", "", [](A& a) { experts(a); }, routed);
  add(
      "project.experts", "values of width 3",
      [](A& a) {
        experts(a);
        a.value_width = 3;
      },
      routed);
  for (const std::string op : {"add", "mul"}) add("project.head_embeddings", op, [&](A& a) { head_embeddings(a, op); });
  add(
      "project.head_embeddings", "mul, biases, values of width 3, with rope and persistent vectors",
      [](A& a) {
        head_embeddings(a, "mul");
        a.project.as<HeadEmbeddingsOptions>().bias = true;
        a.value_width = 3;
        a.position.choose("rope");
        persistent(a);
      },
      self_alone);
  add(
      "project.head_embeddings", "add, biases, mixed heads, windows, with rope",
      [](A& a) {
        head_embeddings(a, "add");
        a.project.as<HeadEmbeddingsOptions>().bias = true;
        mix_heads(a, {"k", "v"});
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      self_alone);
  Exempt content{.fused_training = "the kernel sends no gradient through a bias, and content biases learn"};
  add("project.collaborative", "", [](A& a) { collaborative(a); }, content);
  add("project.collaborative", "no biases, divided by 2, values of width 3, with persistent vectors", [](A& a) {
    collaborative(a, [](auto& own) {
      own.content_bias = own.bias = false;
      own.divide_by = 2;
    });
    a.value_width = 3;
    persistent(a);
  });
  content.cross = no_positions_between;
  add(
      "project.collaborative", "blocks, mixed heads, windows, with rope",
      [](A& a) {
        collaborative(a, [](auto& own) { own.init = "blocks"; });
        a.head_width = 8;
        mix_heads(a, {"k", "v"});
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      content);
  add(
      "project.collaborative", "beside relative positions and a norm of each head",
      [](A& a) {
        collaborative(a);
        a.position.choose("transformer_xl");
        a.gates.items = {gate("head_norm")};
      },
      [&] {
        auto normed = content;
        normed.z_dot_grad_z = "the norm undoes a scale of z: the gradient before it is not the one after";
        return normed;
      }());
  for (const std::string cache : {"raw", "simulated"}) {
    add("project.simulated", cache, [&](A& a) { simulated(a, 2, cache); });
    add(
        "project.simulated", cache + ", queries of width 4, values of width 3, no bias, mixed heads, with rope",
        [&](A& a) {
          simulated(a, 1, cache);
          a.project.as<SimulatedOptions>().bias = false;
          a.head_width = 4;
          a.value_width = 3;
          mix_heads(a, {"k", "v"});
          a.position.choose("rope");
        },
        self_alone);
  }
  add(
      "project.simulated", "kernel 5, windows, grouped average",
      [](A& a) {
        simulated(a, 2, "simulated");
        a.project.as<SimulatedOptions>().kernel = 5;
        a.value_width = 4;
        a.gates.items = {windows({1, 3, 2, 0})};
        grouped_average(a, 2);
      },
      self_alone);
  const Exempt own_units{.axes = "keys and values are units of their own, which go when no head reads them"};
  auto own_units_alone = self_alone;
  own_units_alone.axes = own_units.axes;
  add("project.decoupled", "", [](A& a) { decoupled(a, {0, 0, 1, 1}, {0, 1, 1, 1}); }, own_units);
  add(
      "project.decoupled", "equal maps, no bias, values of width 3",
      [](A& a) {
        decoupled(a, {0, 1, 1, 0}, {0, 1, 1, 0});
        a.project.as<DecoupledProjectOptions>().bias = false;
        a.value_width = 3;
      },
      own_units);
  add(
      "project.decoupled",
      "knocking, mixed heads and persistent vectors over it, values of width 3, with rope and windows",
      [](A& a) {
        decoupled(a, {0, 0, 1, 1}, {0, 1, 2, 0});
        a.value_width = 3;
        mix_heads(a, {"k", "v"});
        a.then.items.insert(a.then.items.begin(), knocking("mlp"));
        persistent(a);
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      own_units_alone);
  add("project.decoupled", "with relative positions",
      [](A& a) {
        decoupled(a, {1, 0, 0, 1}, {0, 0, 1, 2});
        a.position.choose("transformer_xl");
      },
      {.cross = no_positions_between,
       .axes = own_units.axes,
       .fused_training = "the kernel sends no gradient through a bias"});
  add("adapter.fuse_groups", "", [](A& a) { fuse_groups(a, {0, 0, 1, 1}, {0, 1, 1, 1}); });
  add(
      "adapter.fuse_groups", "over groups, then persistent vectors, with rope",
      [](A& a) {
        grouped(a, 2);
        fuse_groups(a, {}, {0, 1});
        persistent(a);
        a.position.choose("rope");
      },
      self_alone);
  add("adapter.mix_heads", "", [](A& a) { mix_heads(a, {"k", "v"}); });
  add("adapter.mix_heads", "2 components, keys alone", [](A& a) {
    grouped(a, 2);
    mix_heads(a, {"k"});
  });
  add(
      "adapter.mix_heads", "2 components, values alone, with rope",
      [](A& a) {
        grouped(a, 2);
        mix_heads(a, {"v"});
        a.position.choose("rope");
      },
      self_alone);
  add("adapter.mix_heads", "values of width 3", [](A& a) {
    mix_heads(a, {"k", "v"});
    a.value_width = 3;
  });
  add("adapter.knocking", "", [](A& a) { a.then.items = {knocking("linear", {"q", "k", "v"})}; });
  add("adapter.knocking", "gate, values of width 3", [](A& a) {
    a.value_width = 3;
    a.then.items = {knocking("gate")};
  });
  add(
      "adapter.knocking",
      "then an mlp, mixed heads and persistent vectors, over groups and windows, values of width 3, with rope",
      [](A& a) {
        grouped(a, 2);
        a.value_width = 3;
        mix_heads(a, {"k", "v"});
        a.then.items.insert(a.then.items.begin(), {knocking("linear", {"q", "k"}), knocking("mlp")});
        persistent(a);
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      self_alone);
  add("adapter.persistent", "", [](A& a) { persistent(a); });
  add(
      "adapter.persistent", "over groups and windows, with rope",
      [](A& a) {
        grouped(a, 2);
        persistent(a);
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      self_alone);
  add(
      "adapter.persistent", "after mixed heads, values of width 3, with alibi",
      [](A& a) {
        grouped(a, 2);
        mix_heads(a, {"k"});
        persistent(a);
        a.value_width = 3;
        a.position.choose("alibi");
      },
      self_alone);
  add("adapter.persistent", "over 2 groups, additive scores",
      [](A& a) {
        grouped(a, 2);
        persistent(a);
        a.weigh.score.choose("additive");
      },
      {.fused = "the kernel knows dot products alone"});
  add("position.none", "", [](A&) {});
  add("position.rope", "", [](A& a) { a.position.choose("rope"); }, self_alone);
  add(
      "position.rope", "half of each head, ntk",
      [](A& a) {
        a.head_width = 8;
        a.position.choose("rope");
        auto& rope = a.position.as<RopeOptions>();
        rope.fraction = 0.5;
        rope.scaling = "ntk";
        rope.factor = 3;
      },
      self_alone);
  add(
      "position.rope", "linear",
      [](A& a) {
        a.position.choose("rope");
        a.position.as<RopeOptions>().scaling = "linear";
        a.position.as<RopeOptions>().factor = 2;
      },
      self_alone);
  add("position.adarope", "", [](A& a) { adarope(a); }, self_alone);
  add(
      "position.adarope", "a base a group, over groups and windows, values of width 3",
      [](A& a) {
        grouped(a, 2);
        a.head_width = 4;
        a.value_width = 3;
        adarope(a, [](auto& own) { own.learn = "base"; });
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      self_alone);
  add(
      "position.adarope", "one table for all beside mixed heads, scores that don't grow",
      [](A& a) {
        grouped(a, 2);
        a.head_width = 4;
        mix_heads(a, {"k", "v"});
        a.position.choose("adarope");
        a.position.as<AdaRopeOptions>().share = "layer";
      },
      self_alone);
  add(
      "position.adarope", "a base for all of a model, which is one attention",
      [](A& a) {
        grouped(a, 2);
        a.head_width = 4;
        adarope(a, [](auto& own) {
          own.learn = "base";
          own.share = "model";
        });
      },
      self_alone);
  add(
      "position.adarope", "frequencies that stay, beside persistent vectors",
      [](A& a) {
        a.head_width = 4;
        persistent(a);
        adarope(a, [](auto& own) {
          own.learn = "none";
          own.share = "head";
        });
      },
      self_alone);
  add("position.alibi", "", [](A& a) { a.position.choose("alibi"); }, self_alone);
  add(
      "position.alibi", "inside, over groups and windows, values of width 3",
      [](A& a) {
        grouped(a, 2);
        a.value_width = 3;
        a.position.choose("alibi");
        a.position.as<AlibiOptions>().bias = "inside";
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      self_alone);
  auto learning = self_alone;
  learning.fused_training = "the kernel sends no gradient through a bias";
  add(
      "position.alibi", "learned",
      [](A& a) {
        a.position.choose("alibi");
        a.position.as<AlibiOptions>().learned = true;
      },
      learning);
  add("position.transformer_xl", "", [](A& a) { a.position.choose("transformer_xl"); }, learning);
  add(
      "position.transformer_xl", "without u and v, over groups and windows",
      [](A& a) {
        grouped(a, 2);
        a.position.choose("transformer_xl");
        a.position.as<TransformerXlOptions>().biases = false;
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      learning);
  add(
      "position.transformer_xl", "with persistent vectors and rounded gates",
      [](A& a) {
        persistent(a);
        a.position.choose("transformer_xl");
        a.gates.items = {l0_round(true)};
      },
      [&] {
        auto rounded = learning;
        rounded.gradients = "gradients pass the rounding as if it were not there, by definition";
        return rounded;
      }());
  add("gate.windows", "", [](A& a) { a.gates.items = {windows({2, 0, 3, 0})}; }, self_alone);
  add("gate.windows", "one for all", [](A& a) { a.gates.items = {windows({3})}; }, self_alone);
  add(
      "gate.windows", "uneven over groups, with rope",
      [](A& a) {
        grouped(a, 2);
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 2})};
      },
      self_alone);
  add(
      "position.offset", "",
      [](A& a) {
        a.position.choose("offset");
        a.position.as<OffsetOptions>().offsets = {0, 1, -1, 3};
      },
      self_alone);
  add(
      "position.offset", "over groups and windows",
      [](A& a) {
        grouped(a, 2);
        a.position.choose("offset");
        a.position.as<OffsetOptions>().offsets = {0, 1, 2, 3};
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      self_alone);
  add("gate.random_windows", "", [](A& a) { a.gates.items = {random_windows({1, 2, 3, 0})}; }, self_alone);
  add(
      "gate.shuffled_windows", "over groups, with rope",
      [](A& a) {
        grouped(a, 2);
        a.position.choose("rope");
        a.gates.items = {shuffled_windows({1, 0, 2, 2})};
      },
      self_alone);
  add("gate.adaptive_windows", "", [](A& a) { a.gates.items = {adaptive_windows("none")}; }, self_alone);
  auto straight_through = self_alone;
  straight_through.gradients =
      "straight-through: the gradient of a choice that the output does not show, by definition";
  add(
      "gate.adaptive_windows", "pairs of groups, averaged choices",
      [](A& a) {
        a.gates.items = {adaptive_windows("none")};
        a.gates.items.front().as<AdaptiveWindowsOptions>().siblings = "pairs";
        a.gates.items.front().as<AdaptiveWindowsOptions>().index_ema = 0.15;
      },
      self_alone);
  add(
      "gate.adaptive_windows", "a controller that learns", [](A& a) { a.gates.items = {adaptive_windows("ste")}; },
      straight_through);
  add("gate.hard_concrete", "", [](A& a) { a.gates.items = {hard_concrete()}; });
  const Exempt rounded{.gradients = "gradients pass the rounding as if it were not there, by definition"};
  add("gate.l0_round", "", [](A& a) { a.gates.items = {l0_round(true)}; }, rounded);
  add(
      "gate.l0_round", "not scaled, then scalar", [](A& a) { a.gates.items = {l0_round(false), gate("scalar")}; },
      rounded);
  add("gate.scalar", "", [](A& a) { a.gates.items = {gate("scalar")}; });
  add("gate.hard_concrete", "then scalar", [](A& a) { a.gates.items = {hard_concrete(), gate("scalar")}; });
  add("gate.scalar", "then hard_concrete", [](A& a) { a.gates.items = {gate("scalar"), hard_concrete()}; });
  add("gate.head_norm", "", [](A& a) { a.gates.items = {gate("head_norm")}; },
      {.z_dot_grad_z = "the norm undoes a scale of z: the gradient before it is not the one after"});
  add("gate.head_norm", "values of width 3",
      [](A& a) {
        a.gates.items = {gate("head_norm")};
        a.value_width = 3;
      },
      {.z_dot_grad_z = "the norm undoes a scale of z: the gradient before it is not the one after"});
  for (const auto& form : likeness_forms())
    add("gate.diversity", form + " of outputs", [&](A& a) { a.gates.items = {diversity("output", form)}; });
  add("gate.diversity", "of values, over groups", [](A& a) {
    grouped(a, 2);
    a.gates.items = {diversity("values", "cos2")};
  });
  add(
      "gate.diversity", "of weights, with scalar gates and windows",
      [](A& a) { a.gates.items = {windows({2, 0, 3, 0}), gate("scalar"), diversity("weights", "cosine")}; },
      [] {
        auto looked_at = self_alone;
        looked_at.fused_training = "the loss is of the weights, which the kernel does not give";
        return looked_at;
      }());
  const Exempt reads_z{.z_dot_grad_z = "importances depend on z: the gradient before the gate is not the one after",
                       .zeroed = "a head of zeros still has a part in the importances"};
  add(
      "gate.dynamic_importance", "over groups",
      [](A& a) {
        grouped(a, 2);
        a.gates.items = {dynamic_importance(true, 0.1)};
      },
      reads_z);
  add(
      "gate.dynamic_importance", "not rescaled, without its loss, values of width 3, after scalar",
      [](A& a) {
        a.value_width = 3;
        a.gates.items = {gate("scalar"), dynamic_importance(false, 0)};
      },
      reads_z);
  auto stopped = routed;
  stopped.gradients = "the sum that a weight is divided by is held fixed in the backward pass, by definition";
  add("gate.route_experts", "", [](A& a) { experts(a); }, routed);
  add("gate.route_experts", "weights divided by their sum", [](A& a) { experts(a, "detached_sum"); }, stopped);
  add(
      "gate.route_experts", "one of them shared",
      [](A& a) {
        experts(a);
        a.gates.items.front().as<RouteExpertsOptions>().shared = 1;
      },
      routed);
  const auto sparse = [](const std::string& balance, const std::function<void(NativeSparseOptions&)>& change = {}) {
    auto choice = gate("native_sparse");
    auto& options = choice.as<NativeSparseOptions>();
    options.balance = balance;
    options.weight = 0.1;
    if (change) change(options);
    return choice;
  };
  auto picking = self_alone;
  picking.picks = "a token may pick another head";
  for (const std::string balance : {"fp", "cv", "loss_free", "none"})
    add("gate.native_sparse", balance, [&](A& a) { a.gates.items = {sparse(balance)}; }, picking);
  add(
      "gate.native_sparse", "places of its own for rope, one shared head with a window",
      [&](A& a) {
        a.position.choose("rope");
        a.gates.items = {sparse("fp", [](auto& o) { o.active = o.shared = 1, o.window = 2; })};
      },
      picking);
  add(
      "gate.native_sparse", "over groups, places in the text for rope, then scalar",
      [&](A& a) {
        grouped(a, 2);
        a.position.choose("rope");
        a.gates.items = {sparse("fp", [](auto& o) { o.active = 1, o.positions = "global"; }), gate("scalar")};
      },
      picking);
  add(
      "gate.native_sparse", "over groups, places of its own, windows before it, persistent vectors",
      [&](A& a) {
        grouped(a, 2);
        persistent(a);
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0}), sparse("cv", [](auto& o) { o.active = 1; })};
      },
      picking);
  add("mix.concatenate", "", [](A&) {});
  add("mix.concatenate", "no bias", [](A& a) { a.mix.as<ConcatenateOptions>().bias = false; });
  for (const int64_t concatenated : {1, 2, 4})
    add("mix.grouped_average", std::to_string(concatenated) + " of 4 heads",
        [&](A& a) { grouped_average(a, concatenated); });
  add("mix.grouped_average", "no bias, values of width 4, over groups", [](A& a) {
    grouped(a, 2);
    a.value_width = 4;
    a.mix.choose("grouped_average");
    a.mix.as<GroupedAverageOptions>().bias = false;
  });
  add("mix.low_rank", "", [](A& a) { a.mix.choose("low_rank"); });
  add("mix.low_rank", "rank 2, scaled, no bias, values of width 3", [](A& a) {
    a.value_width = 3;
    a.mix.choose("low_rank");
    a.mix.as<LowRankMixOptions>() = [] {
      LowRankMixOptions options;
      options.bias = false;
      options.rank = 2;
      options.scale = 0.5;
      return options;
    }();
  });
  add("mix.experts", "", [](A& a) { experts(a); }, routed);
  const Exempt votes{.shares = "all heads decide what share of each goes where"};
  for (const std::string type : {"dynamic_agreement", "em_agreement", "dynamic_capsules", "em_capsules"})
    add("mix." + type, "", [&](A& a) { a.mix.choose(type); }, votes);
  add(
      "mix.dynamic_agreement", "2 capsules, linear maps without bias, values of width 3, over groups",
      [](A& a) {
        grouped(a, 2);
        a.value_width = 3;
        a.mix.choose("dynamic_agreement");
        auto& mix = a.mix.as<DynamicAgreementOptions>();
        mix.capsules = 2;
        mix.input = "linear";
        mix.bias = false;
        mix.iterations = 2;
      },
      votes);
  add(
      "mix.em_agreement", "8 capsules, gelu, values of width 3, after a norm of each head",
      [](A& a) {
        a.value_width = 3;
        a.gates.items = {gate("head_norm")};
        a.mix.choose("em_agreement");
        a.mix.as<EmAgreementOptions>().capsules = 8;
        a.mix.as<EmAgreementOptions>().input = "gelu";
        a.mix.as<EmAgreementOptions>().rising = true;
      },
      [&] {
        auto normed = votes;
        normed.z_dot_grad_z = "the norm undoes a scale of z: the gradient before it is not the one after";
        return normed;
      }());
  add(
      "mix.dynamic_capsules", "3 capsules of width 5 instead of W_O, not squashed, no bias",
      [](A& a) {
        a.mix.choose("dynamic_capsules");
        auto& mix = a.mix.as<DynamicCapsulesOptions>();
        mix.capsules = 3;
        mix.width = 5;
        mix.merge = "replace";
        mix.squash = false;
        mix.bias = false;
      },
      votes);
  add(
      "mix.em_capsules", "3 capsules of width 5 instead of W_O, values of width 3, variances of at least 0.2",
      [](A& a) {
        a.value_width = 3;
        a.mix.choose("em_capsules");
        auto& mix = a.mix.as<EmCapsulesOptions>();
        mix.capsules = 3;
        mix.width = 5;
        mix.floor = 0.2;  // what is divided by small variances is rounded more than the bounds of these tests
        mix.merge = "replace";
      },
      votes);
  add("score.dot_product", "", [](A&) {});
  add("score.dot_product", "scale 1", [](A& a) { a.weigh.score.as<DotProductOptions>().scale = 1.0; });
  const Exempt explicit_alone{.fused = "the kernel knows dot products alone"};
  add("score.additive", "", [](A& a) { a.weigh.score.choose("additive"); }, explicit_alone);
  add(
      "score.additive", "hidden width 5, over groups, values of width 3",
      [](A& a) {
        grouped(a, 2);
        a.value_width = 3;
        a.weigh.score.choose("additive");
        a.weigh.score.as<AdditiveOptions>().width = 5;
      },
      explicit_alone);
  auto explicit_self = self_alone;
  explicit_self.fused = explicit_alone.fused;
  add(
      "score.additive", "with windows and alibi",
      [](A& a) {
        a.weigh.score.choose("additive");
        a.position.choose("alibi");
        a.gates.items = {windows({2, 0, 3, 0})};
      },
      explicit_self);
  add("normalise.softmax", "", [](A&) {});
  add("normalise.sparsemax", "", [](A& a) { a.weigh.normalise.choose("sparsemax"); }, explicit_alone);
  add(
      "normalise.sparsemax", "over groups and windows, with rope and persistent vectors",
      [](A& a) {
        grouped(a, 2);
        persistent(a);
        a.weigh.normalise.choose("sparsemax");
        a.position.choose("rope");
        a.gates.items = {windows({1, 3, 2, 0})};
      },
      explicit_self);
  return rows;
}

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& entry, const std::string& with,
                       const std::function<void(EncoderDecoderOptions&)>& change) {
    auto options = small_encoder_decoder();
    change(options);
    rows.push_back({entry, with, model_choice("encoder_decoder", options), std::nullopt});
  };
  using O = EncoderDecoderOptions;
  // Roles are of the text that an encoder reads.
  add("gate.role_masks", "", [](O& o) { o.encoder.attention.gates.items = {role_masks({"a", "", "b"})}; });
  add("gate.role_masks", "over groups, with rope and windows", [](O& o) {
    grouped(o.encoder.attention, 2);
    o.encoder.attention.position.choose("rope");
    o.encoder.attention.gates.items = {role_masks({"", "a", "b", "a"}), windows({1, 3, 2, 0})};
  });
  // So is the length of a text.
  for (const bool rescale : {true, false})
    add("gate.heads_by_length", rescale ? "" : "not rescaled", [&](O& o) {
      auto choice = gate("heads_by_length");
      auto& options = choice.as<HeadsByLengthOptions>();
      options.heads = {1, 3, 4};
      options.thresholds = {4, 5};
      options.rescale = rescale;
      o.encoder.attention.gates.items = {choice};
    });
  add("norm.layer_norm", "", [](O&) {});
  add("norm.layer_norm", "without gamma and beta", [](O& o) { o.norm.as<LayerNormOptions>().affine = false; });
  add("norm.rms_norm", "", [](O& o) { o.norm.choose("rms_norm"); });
  add("norm.rms_norm", "without gamma", [](O& o) {
    o.norm.choose("rms_norm");
    o.norm.as<RmsNormOptions>().affine = false;
  });
  add("norm.min_max", "", [](O& o) { o.norm.choose("min_max"); });
  add("norm.min_max", "without gamma and beta", [](O& o) {
    o.norm.choose("min_max");
    o.norm.as<MinMaxOptions>().affine = false;
  });
  add("norm.none", "", [](O& o) { o.norm.choose("none"); });
  add("feed_forward.relu", "no bias", [](O& o) { o.encoder.feed_forward.as<PositionWiseOptions>().bias = false; });
  add("feed_forward.swiglu", "with biases", [](O& o) {
    o.decoder.feed_forward.choose("swiglu");
    o.decoder.feed_forward.as<SwiGluOptions>().bias = true;
  });
  for (const std::string type : {"relu", "gelu", "swiglu"})
    add("feed_forward." + type, "", [&](O& o) {
      for (auto* ff : {&o.encoder.feed_forward, &o.decoder.feed_forward}) {
        ff->choose(type);
        ff->as<PositionWiseOptions>().width = 5;
      }
    });
  add("feed_forward.none", "", [](O& o) {
    for (auto* ff : {&o.encoder.feed_forward, &o.decoder.feed_forward}) ff->choose("none");
  });
  for (const std::string type : {"sinusoidal", "learned", "none"})
    add("added_position." + type, "", [&](O& o) { o.embedding.position.choose(type); });
  for (const std::string type : {"pre", "post", "sandwich", "admin"})
    add("residual." + type, "", [&](O& o) { o.residual.choose(type); });
  add("mixer.attention", "", [](O&) {});
  const auto ngram = [](int64_t n) {
    Choice choice(mixer_catalogue, "ngram");
    choice.as<NgramOptions>().n = n;
    choice.as<NgramOptions>().heads = small_heads;
    return choice;
  };
  add("mixer.ngram", "", [&](O& o) { o.encoder.mixer = o.decoder.mixer = ngram(3); });
  add("mixer.ngram", "longer than most texts, relu, no biases", [&](O& o) {
    auto mixer = ngram(7);
    mixer.as<NgramOptions>().activation = "relu";
    mixer.as<NgramOptions>().bias = false;
    o.encoder.mixer = o.decoder.mixer = mixer;
  });
  add("mixer.ngram", "in the first layers, attention after it", [&](O& o) {
    LayerOverride of_encoder;
    CrossLayerOverride of_decoder;
    of_encoder.layers = of_decoder.layers = {0};
    of_encoder.mixer = of_decoder.mixer = ngram(2);
    of_encoder.attention = of_decoder.attention = o.encoder.attention;
    of_decoder.cross_attention = o.decoder.cross_attention;
    of_encoder.feed_forward = of_decoder.feed_forward = o.encoder.feed_forward;
    o.encoder.per_layer = {of_encoder};
    o.decoder.per_layer = {of_decoder};
  });
  const Exempt two_kinds{.axes = "heads of two kinds have parameters of two shapes"};
  const auto beside_ngrams = [&](const std::string& with, int64_t heads,
                                 const std::function<void(AttentionOptions&)>& change) {
    auto options = small_encoder_decoder();
    for (auto* mixer : {&options.encoder.mixer, &options.decoder.mixer}) {
      mixer->choose("ngram_and_attention");
      mixer->as<NgramAndAttentionOptions>().heads = heads;
      mixer->as<NgramAndAttentionOptions>().n = 3;
    }
    for (auto* attention : {&options.encoder.attention, &options.decoder.attention}) change(*attention);
    rows.push_back(
        {"mixer.ngram_and_attention", with, model_choice("encoder_decoder", options), std::nullopt, two_kinds});
  };
  beside_ngrams("", 2, [](auto&) {});
  beside_ngrams("one n-gram head; grouped keys, rope, windows and scalars", 1, [](auto& a) {
    grouped(a, 2);
    a.position.choose("rope");
    a.gates.items = {windows({1, 3, 2, 0}), gate("scalar")};
  });
  const auto by_length = [](const std::function<void(AttentionOptions&)>& change) {
    auto options = small_encoder_decoder();
    options.encoder.mixer.choose("heads_by_length");
    options.encoder.mixer.as<SeparateHeadsOptions>().heads = {1, 2, 4};
    options.encoder.mixer.as<SeparateHeadsOptions>().thresholds = {4, 5};
    change(options.encoder.attention);
    return options;
  };
  const std::string several = "a tap is shown each length's attention in turn, and these differ in heads and widths";
  const Exempt separate{.z_dot_grad_z = several, .zeroed = several, .axes = several};
  rows.push_back(
      {"mixer.heads_by_length", "", model_choice("encoder_decoder", by_length([](auto&) {})), std::nullopt, separate});
  rows.push_back({"mixer.heads_by_length", "with rope and scalar",
                  model_choice("encoder_decoder", by_length([](auto& a) {
                                 a.position.choose("rope");
                                 a.gates.items = {gate("scalar")};
                               })),
                  std::nullopt, separate});
  add("block.transformer", "", [](O&) {});
  add("block.conformer", "", [](O& o) { o.encoder.block.choose("conformer"); });
  add("block.conformer", "kernel 3, gelu, post-norm, windows over groups", [](O& o) {
    o.encoder.block.choose("conformer");
    o.encoder.block.as<ConformerOptions>().kernel = 3;
    o.encoder.feed_forward.choose("gelu");
    o.residual.choose("post");
    grouped(o.encoder.attention, 2);
    o.encoder.attention.gates.items = {windows({1, 3, 2, 0})};
  });
  for (const std::string tie : {"all", "target", "none"})
    add("model.encoder_decoder", "tie " + tie, [&](O& o) { o.embedding.tie = tie; });
  add("model.encoder_decoder", "an encoder of another width, layers that differ", [](O& o) {
    o.embedding.tie = "target";
    o.encoder.d_model = 12;
    o.encoder.layers = 2;
    LayerOverride second;
    second.layers = {1};
    second.attention = o.encoder.attention;
    second.attention.position.choose("alibi");
    second.feed_forward.choose("swiglu");
    o.encoder.per_layer = {second};
    CrossLayerOverride first;
    first.layers = {0};
    first.attention = o.decoder.attention;
    first.attention.head_width = 4;
    first.cross_attention = o.decoder.cross_attention;
    first.cross_attention.value_width = 1;
    first.feed_forward = o.decoder.feed_forward;
    o.decoder.per_layer = {first};
  });
  rows.push_back({"model.decoder_only", "", model_choice("decoder_only", small_decoder_only()), std::nullopt});
  rows.push_back({"model.encoder_only", "", model_choice("encoder_only", small_encoder_only()), std::nullopt});
  rows.push_back({"model.frame_encoder", "", model_choice("frame_encoder", small_frame_encoder()), std::nullopt});
  auto conformers = small_frame_encoder();
  conformers.encoder.block.choose("conformer");
  conformers.encoder.attention.gates.items = {diversity("weights", "cos2")};
  rows.push_back({"model.frame_encoder",
                  "conformers whose weights are kept apart",
                  model_choice("frame_encoder", conformers),
                  std::nullopt,
                  {.fused_training = "the loss is of the weights, which the kernel does not give"}});
  auto untied = small_decoder_only();
  untied.embedding.tie = "none";
  rows.push_back({"model.decoder_only", "untied", model_choice("decoder_only", untied), std::nullopt});
  auto segmented = small_decoder_only();
  segmented.segments.length = 3;
  segmented.segments.memory = 2;
  segmented.decoder.attention.position.choose("rope");
  const std::string stops = "no gradient goes from one segment to another, by definition";
  rows.push_back({"model.decoder_only",
                  "by segments",
                  model_choice("decoder_only", segmented),
                  std::nullopt,
                  {.gradients = stops}});
  return rows;
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = [] {
    auto all = attention_rows();
    for (auto& row : model_rows()) all.push_back(row);
    return all;
  }();
  return rows;
}

// Helpers -------------------------------------------------------------------------------------------------------------

/// The exemptions of all entries of the row's attention, or of what stands in its place.
std::string exemption(const Row& row, std::string Traits::*which) {
  if (!row.attention && row.model.type() == "encoder_decoder") {
    const auto& options = row.model.as<EncoderDecoderOptions>();
    std::string reasons;
    for (const auto& parts : {options.encoder.parts(), options.decoder.parts()})
      for (const auto& layer : parts) reasons += mixers().traits(layer.mixer.type()).*which;
    return reasons;
  }
  if (!row.attention) return "";
  const auto& a = *row.attention;
  std::string reason = projects().traits(a.project.type()).*which;
  for (const auto& adapter : a.then.items) reason += adapters().traits(adapter.type()).*which;
  reason += positions().traits(a.position.type()).*which;
  for (const auto& one : a.gates.items) reason += gates().traits(one.type()).*which;
  reason += mixes().traits(a.mix.type()).*which;
  reason += scores().traits(a.weigh.score.type()).*which;
  return reason + normalisers().traits(a.weigh.normalise.type()).*which;
}

bool is_routed(const Row& row) { return row.attention && row.attention->project.type() == "experts"; }
bool has_encoder(const Row& row) { return row.model.type() != "decoder_only"; }
bool reads_frames(const Row& row) { return row.model.type() == "frame_encoder"; }
bool generates(const Row& row) { return row.model.type() != "encoder_only" && !reads_frames(row); }

/// The first row of the batch's tokens that a mask covers, of all rows one after another: [N, ...].
Tensor real(const Tensor& x_BT, const Batch& batch) {
  const auto T = batch.target_mask_BT.size(1);
  return x_BT.narrow(1, 0, T).index({batch.target_mask_BT});
}

std::map<std::string, Tensor> each(const std::map<std::string, Tensor>& side,
                                   const std::function<Tensor(const Tensor&)>& change) {
  std::map<std::string, Tensor> changed;
  for (const auto& [name, tensor] : side) changed[name] = change(tensor);
  return changed;
}

Batch rows_of(const Batch& batch, const Tensor& rows) {
  const auto pick = [&](const Tensor& x) { return x.index_select(0, rows); };
  return {pick(batch.source_BS), pick(batch.source_mask_BS), pick(batch.target_BT), pick(batch.target_mask_BT),
          each(batch.side, pick)};
}

Batch padded(const Batch& batch, int64_t more) {
  const auto longer = [&](const Tensor& x) { return torch::constant_pad_nd(x, {0, more}); };
  return {longer(batch.source_BS), longer(batch.source_mask_BS), longer(batch.target_BT), longer(batch.target_mask_BT),
          each(batch.side, [&](const Tensor& x) {  // frames [B,T,F] or roles [B,S,S]
            return x.is_floating_point() ? torch::constant_pad_nd(x, {0, 0, 0, more}, 2.0)
                                         : torch::constant_pad_nd(x, {0, more, 0, more});
          })};
}

/// Two layers of four heads a stack, as a scale of ones and zeros.
std::map<Stack, Tensor> mask_of_heads(const Model& model, const HeadTable& kept) {
  auto scale = model.ones();
  for (auto& [stack, ones] : scale) {
    ones.zero_();
    const auto& layers = kept.at(stack);
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      for (auto head : layers[layer]) ones[static_cast<int64_t>(layer)][head] = 1;
  }
  return scale;
}

/// The same lists for each stack of the model.
HeadTable everywhere(const Model& model, const std::vector<std::vector<int64_t>>& layers) {
  HeadTable kept;
  for (const auto& [stack, count] : model.original_heads()) kept[stack] = layers;
  return kept;
}

std::shared_ptr<Model> copy_of(const Model& model) { return std::dynamic_pointer_cast<Model>(model.clone()); }

/// A pass with these head scales.
Tensor scaled_logits(Model& model, const Batch& batch, const std::map<Stack, Tensor>& scale) {
  Forward run;
  run.scale = scale;
  return model.logits(batch, run);
}

Tensor tapped_logits(Model& model, const Batch& batch, Tap& tap) {
  Forward run;
  run.taps = {&tap};
  return model.logits(batch, run);
}

struct Precision {
  torch::ScalarType type;
  double close;    // two ways of the same sum, as `apart` says it
  double removed;  // a model with fewer heads against one with masked heads
};
const Precision precisions[] = {{torch::kFloat32, 2e-6, 1e-5}, {torch::kFloat64, 1e-12, 1e-10}};
const Precision& in_double = precisions[1];

/// max |a - b|, over the largest |b| where that is above 1 (logits of a model without norms are large).
double apart(const Tensor& a, const Tensor& b) {
  return difference(a, b) / std::max(1.0, b.abs().max().item<double>());
}

/// Whether no row was asked before with the same options: several entries' defaults are one and the same model.
struct Asked {
  std::set<std::string> before;
  bool first(const Row& row) { return before.insert(row.model.type() + dump_text(row.model.options())).second; }
};

/// Calls `check` with each row's model, in evaluation mode.
void for_each_row(const Precision& precision, const std::function<void(const Row&, Model&, const Batch&)>& check) {
  DefaultDtype guard(precision.type);
  const auto ids = small_batch();
  auto frames = ids;
  frames.side = {{frames_name, noise({3, 8, 5}, "frames")}};
  for (const auto& row : table()) {
    INFO(row.name() << ", " << torch::toString(precision.type));
    auto model = make_model(row.model);
    check(row, *model, reads_frames(row) ? frames : ids);
  }
}

}  // namespace

// The claims ----------------------------------------------------------------------------------------------------------

TEST_CASE("every entry of every slot has a row in the conformance table", "[conformance]") {
  std::map<std::string, std::vector<std::string>> slots{{"project", projects().catalogue().names()},
                                                        {"adapter", adapters().catalogue().names()},
                                                        {"position", positions().catalogue().names()},
                                                        {"gate", gates().catalogue().names()},
                                                        {"mix", mixes().catalogue().names()},
                                                        {"score", scores().catalogue().names()},
                                                        {"normalise", normalisers().catalogue().names()},
                                                        {"norm", norms().catalogue().names()},
                                                        {"feed_forward", feed_forwards().catalogue().names()},
                                                        {"added_position", added_positions().catalogue().names()},
                                                        {"residual", residuals().catalogue().names()},
                                                        {"model", models().catalogue().names()},
                                                        {"mixer", mixers().catalogue().names()},
                                                        {"block", blocks().catalogue().names()}};
  std::set<std::string> tried;
  for (const auto& row : table()) tried.insert(row.entry);
  // Frames and symbols of two lengths, and no layers: tests/modules/model/frame_transcriber_test.cpp,
  // frame_ctc_test.cpp.
  tried.insert({"model.frame_transcriber", "model.frame_ctc"});
  for (const auto& [slot, entries] : slots)
    for (const auto& entry : entries) {
      INFO("tests/modules/conformance_test.cpp has no row for " << slot << "." << entry);
      CHECK(tried.count(slot + "." + entry) == 1);
    }
}

TEST_CASE("every entry keeps the rules between options", "[conformance]") {
  for (const auto& row : table()) {
    INFO(row.name());
    Problems problems;
    row.model.options().rules(problems);
    CHECK(problems.found.empty());
  }
}

TEST_CASE("every entry gives logits of the stated shape, for other batches and lengths too", "[conformance]") {
  for_each_row(precisions[0], [](const Row&, Model& model, const Batch& batch) {
    const auto logits = logits_of(model, batch);
    CHECK(shape_text(logits) == "[3, 8, 11]");
    CHECK(finite(real(logits, batch)));
    Forward run;
    CHECK(shape_text(model.hidden(batch, run)) == "[3, 8, 8]");
    const auto one = torch::zeros({1}, torch::kLong);
    const Batch small{batch.source_BS.narrow(0, 0, 1).narrow(1, 0, 1),
                      {},
                      batch.target_BT.narrow(0, 0, 1).narrow(1, 0, 1),
                      {},
                      each(batch.side, [](const Tensor& x) {
                        const auto first = x.narrow(0, 0, 1).narrow(1, 0, 1);
                        return x.is_floating_point() ? first : first.narrow(2, 0, 1);
                      })};
    const auto of_one = logits_of(model, small);
    CHECK(shape_text(of_one) == "[1, 1, 11]");
    CHECK(finite(of_one));
  });
}

TEST_CASE("the gradients of every entry of an attention are those of differences", "[conformance]") {
  DefaultDtype guard(torch::kFloat64);
  Asked asked;
  for (const auto& row : table()) {
    if (!row.attention || !row.exempt.gradients.empty() || !asked.first(row)) continue;
    for (const bool cross : {false, true}) {
      if (cross && !row.exempt.cross.empty()) continue;
      INFO(row.name() << (cross ? ", cross" : ", self"));
      auto attention = make_attention(*row.attention, small_width, cross);
      attention->train();  // with the noise of gates and the losses that they add
      auto x = noise({2, 4, small_width}, "x").requires_grad_();
      auto memory = noise({2, 3, small_width}, "memory").requires_grad_();
      const auto weight = noise({2, 4, small_width}, "loss");
      const auto loss = [&] {
        Forward run;
        run.noise_seed = 5;
        Visibility see;
        see.causal = !cross;
        if (cross) see.key_mask_BS = mask_of({3, 2}, 3);
        if (!cross) see.query_mask_BT = mask_of({4, 2}, 4);
        auto sum = (attention->forward(call_of(x, run, see, cross ? memory : Tensor())) * weight).sum();
        for (const auto& aux : run.aux) sum = sum + aux.sum;
        return sum;
      };
      auto tensors = attention->named_parameters();
      tensors.insert("x", x);
      if (cross) tensors.insert("memory", memory);
      attention->zero_grad();
      loss().backward();
      torch::NoGradGuard no_grad;
      constexpr double step = 1e-6;
      double worst = 0;
      std::string where;
      for (auto& item : tensors) {
        auto values = item.value().view(-1);
        const auto gradient =
            item.value().grad().defined() ? item.value().grad().reshape(-1) : torch::zeros_like(values);
        for (int64_t i = 0; i < values.numel(); ++i) {
          const auto before = values[i].item<double>();
          values[i] = before + step;
          const auto up = loss().item<double>();
          values[i] = before - step;
          const auto down = loss().item<double>();
          values[i] = before;
          const auto found = (up - down) / (2 * step);
          const auto wrong = std::abs(found - gradient[i].item<double>()) / (1 + std::abs(found));
          if (wrong > worst) {
            worst = wrong;
            where = item.key();
          }
        }
      }
      INFO(where);
      CHECK(worst < 2e-7);
    }
  }
}

TEST_CASE("the gradients of every model are those of differences, parameter by parameter, along a random direction",
          "[conformance]") {
  Asked asked;
  for_each_row(in_double, [&](const Row& row, Model& model, const Batch& batch) {
    if (!row.exempt.gradients.empty() || !asked.first(row)) return;
    model.train();
    const auto weight = noise({3, 8, small_vocabulary}, "loss");
    const auto loss = [&] {
      Forward run;
      run.noise_seed = 5;
      auto sum = (model.logits(batch, run) * weight).sum();
      for (const auto& aux : run.aux) sum = sum + aux.sum;
      return sum;
    };
    loss().backward();
    torch::NoGradGuard no_grad;
    constexpr double step = 1e-6;
    for (auto& item : model.named_parameters()) {
      auto parameter = item.value();
      INFO(item.key());
      const auto direction = noise(parameter.sizes(), "direction/" + item.key());
      REQUIRE(parameter.grad().defined());
      parameter.add_(direction, step);
      const auto up = loss().item<double>();
      parameter.add_(direction, -2 * step);
      const auto down = loss().item<double>();
      parameter.add_(direction, step);
      const auto along = (parameter.grad() * direction).sum().item<double>();
      CHECK(std::abs((up - down) / (2 * step) - along) < 1e-6 * (1 + std::abs(along)));
    }
  });
}

TEST_CASE("what comes later never changes what a decoder says now, bit for bit", "[conformance]") {
  for_each_row(precisions[0], [](const Row& row, Model& model, const Batch& batch) {
    if (!generates(row)) return;
    torch::NoGradGuard no_grad;
    const auto before = logits_of(model, batch);
    for (const int64_t t : {0, 3, 6}) {
      auto changed = batch;
      changed.target_BT = batch.target_BT.clone();
      auto later = changed.target_BT.slice(1, t + 1);
      later.copy_((later - 2).remainder(8) + 3);
      REQUIRE(!torch::equal(changed.target_BT, batch.target_BT));
      const auto after = logits_of(model, changed);
      INFO("tokens after " << t);
      const auto now = after.narrow(1, 0, t + 1), then = before.narrow(1, 0, t + 1);
      if (row.exempt.equal_bits.empty())
        CHECK(torch::equal(now, then));
      else
        CHECK(difference(now, then) < 1e-6);
      CHECK(!torch::equal(after.slice(1, t + 1), before.slice(1, t + 1)));
    }
  });
}

TEST_CASE("padding never changes what is said of real tokens", "[conformance]") {
  for_each_row(in_double, [](const Row& row, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    const auto before = real(logits_of(model, batch), batch);
    CHECK(difference(real(logits_of(model, padded(batch, 3)), batch), before) < 1e-12);
    auto other_pads = batch;
    other_pads.source_BS = batch.source_BS.masked_fill(batch.source_mask_BS.logical_not(), 4);
    other_pads.target_BT = batch.target_BT.masked_fill(batch.target_mask_BT.logical_not(), 4);
    if (reads_frames(row))
      other_pads.side[frames_name] =
          batch.side.at(frames_name).masked_fill(batch.target_mask_BT.logical_not().unsqueeze(-1), 4);
    CHECK(difference(real(logits_of(model, other_pads), batch), before) < 1e-12);
    // Without a mask the same tokens are seen.
    auto unmasked = batch;
    unmasked.source_mask_BS = unmasked.target_mask_BT = Tensor();
    auto all = batch;
    all.source_mask_BS = torch::ones_like(batch.source_mask_BS);
    all.target_mask_BT = torch::ones_like(batch.target_mask_BT);
    CHECK(difference(logits_of(model, unmasked), logits_of(model, all)) < 1e-12);
    if (has_encoder(row)) CHECK(difference(real(logits_of(model, unmasked), batch), before) > 1e-6);
  });
}

TEST_CASE("two evaluations are equal bit for bit, and leave the model as it is", "[conformance]") {
  for_each_row(precisions[0], [](const Row&, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    std::map<std::string, Tensor> before;
    for (const auto& item : model.named_parameters()) before[item.key()] = item.value().clone();
    for (const auto& item : model.named_buffers()) before[item.key()] = item.value().clone();
    Forward one, two;
    one.noise_seed = 1;
    two.noise_seed = 2;  // noise belongs to training
    CHECK(torch::equal(model.logits(batch, one), model.logits(batch, two)));
    CHECK(one.aux.empty());
    model.train();
    logits_of(model, batch);
    for (const auto& item : model.named_parameters()) CHECK(torch::equal(item.value(), before.at(item.key())));
    for (const auto& item : model.named_buffers()) CHECK(torch::equal(item.value(), before.at(item.key())));
  });
}

TEST_CASE("dropout is off in evaluation and on in training", "[conformance]") {
  DefaultDtype guard(torch::kFloat32);
  const auto batch = small_batch();
  for (const auto& row : table()) {
    if (row.model.type() != "encoder_decoder") continue;
    INFO(row.name());
    const auto plain = make_model(row.model);
    const auto with = [&](const std::function<void(EncoderDecoderOptions&)>& change) {
      auto choice = row.model;
      change(choice.as<EncoderDecoderOptions>());
      auto model = make_model(choice);
      CHECK(torch::equal(logits_of(*model, batch), logits_of(*plain, batch)));
      model->train();
      plain->train();
      torch::manual_seed(1);
      CHECK(!torch::equal(logits_of(*model, batch), logits_of(*plain, batch)));
      plain->eval();
    };
    with([](auto& o) { o.dropout = 0.8; });
    with([](auto& o) {
      for (auto* a : {&o.encoder.attention, &o.decoder.attention, &o.decoder.cross_attention}) a->weigh.dropout = 0.8;
    });
    if (row.entry == "feed_forward.none") continue;
    with([](auto& o) {
      for (auto* ff : {&o.encoder.feed_forward, &o.decoder.feed_forward})
        ff->template as<PositionWiseOptions>().dropout = 0.8;
    });
  }
}

TEST_CASE("a clone is equal and independent", "[conformance]") {
  for_each_row(precisions[0], [](const Row&, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    const auto before = logits_of(model, batch);
    model.parameters().back().set_requires_grad(false);
    std::shared_ptr<Model> clone;
    {
      DefaultDtype other(torch::kFloat64);  // what new tensors are does not matter
      clone = copy_of(model);
    }
    CHECK(torch::equal(logits_of(*clone, batch), before));
    CHECK(clone->is_training() == model.is_training());
    auto mine = model.named_parameters(), its = clone->named_parameters();
    REQUIRE(mine.keys() == its.keys());
    for (const auto& item : mine) {
      CHECK(its[item.key()].data_ptr() != item.value().data_ptr());
      CHECK(its[item.key()].requires_grad() == item.value().requires_grad());
    }
    for (auto& item : its) item.value().add_(1);
    CHECK(torch::equal(logits_of(model, batch), before));
    CHECK(!torch::equal(logits_of(*clone, batch), before));
  });
}

TEST_CASE("saved parameters come back to the same logits, uneven and empty layers included", "[conformance]") {
  Scratch scratch;
  for_each_row(precisions[0], [&](const Row& row, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    for (const bool pruned : {false, true}) {
      if (pruned) model.keep(everywhere(model, {{1, 2}, {}}));
      TensorMap tensors;
      for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value().detach();
      for (const auto& item : model.named_buffers()) tensors[item.key()] = item.value();
      write_safetensors(scratch / "model.safetensors", tensors);
      const auto file = read_safetensors(scratch / "model.safetensors");
      auto other = models().make(row.model, small_context(model.heads()));
      for (auto& item : other->named_parameters()) item.value().fill_(std::nan(""));
      for (auto* list : {new auto(other->named_parameters()), new auto(other->named_buffers())}) {
        for (auto& item : *list) {
          REQUIRE(file.tensors.at(item.key()).sizes() == item.value().sizes());
          item.value().copy_(file.tensors.at(item.key()));
        }
        delete list;
      }
      other->eval();
      CHECK(text_of(other->heads()) == text_of(model.heads()));
      CHECK(torch::equal(logits_of(*other, batch), logits_of(model, batch)));
    }
  });
}

namespace {

/// Changes every number of the options, at any depth.
void change_all(Options& options) {
  Fields fields;
  options.describe(fields);
  for (const auto& field : fields.all()) {
    if (auto* const* v = std::get_if<int64_t*>(&field.value)) **v += 1;
    if (auto* const* v = std::get_if<double*>(&field.value)) **v += 0.5;
    if (auto* const* v = std::get_if<bool*>(&field.value)) **v = !**v;
    if (auto* const* v = std::get_if<std::optional<int64_t>*>(&field.value)) **v = (**v).value_or(0) + 1;
    if (auto* const* v = std::get_if<std::vector<int64_t>*>(&field.value)) (**v).push_back(1);
    if (auto* const* v = std::get_if<Options*>(&field.value)) change_all(**v);
    if (auto* const* v = std::get_if<Choice*>(&field.value)) change_all((**v).options());
    if (auto* const* v = std::get_if<Choices*>(&field.value))
      for (auto& item : (**v).items) change_all(item.options());
  }
}

}  // namespace

TEST_CASE("copied options are equal, independent, and make the same model", "[conformance]") {
  for (const auto& row : table()) {
    INFO(row.name());
    auto copy = row.model;
    const auto text = dump_text(row.model.options());
    CHECK(dump_text(copy.options()) == text);
    const auto one = models().make(row.model, small_context()), two = models().make(copy, small_context());
    const auto mine = one->named_parameters(), its = two->named_parameters();
    REQUIRE(mine.keys() == its.keys());
    for (const auto& item : mine) CHECK(its[item.key()].sizes() == item.value().sizes());
    change_all(copy.options());
    CHECK(dump_text(row.model.options()) == text);
    CHECK(dump_text(copy.options()) != text);
  }
}

TEST_CASE("a masked head equals a removed head", "[conformance]") {
  for (const auto& precision : precisions)
    for_each_row(precision, [&](const Row& row, Model& model, const Batch& batch) {
      torch::NoGradGuard no_grad;
      const auto reason = exemption(row, &Traits::not_masked_equals_removed);
      const auto full = logits_of(model, batch);
      for (const std::vector<std::vector<int64_t>>& layers :
           {std::vector<std::vector<int64_t>>{{0, 2}, {1}}, {{}, {1, 3}}, {{0, 1, 2, 3}, {3}}, {{}, {}}}) {
        const auto kept = everywhere(model, layers);
        auto removed = copy_of(model);
        removed->keep(kept);
        CHECK(text_of(removed->heads()) == text_of(kept));
        CHECK((removed->original_heads() == model.original_heads()));
        CHECK(removed->parameter_count() < model.parameter_count());
        const auto logits = logits_of(*removed, batch);
        CHECK(finite(real(logits, batch)));
        CHECK(difference(real(logits, batch), real(full, batch)) > 1e-4);
        if (reason.empty())
          CHECK(apart(real(logits, batch), real(scaled_logits(model, batch, mask_of_heads(model, kept)), batch)) <
                precision.removed);
        // A scale goes by original heads before and after.
        CHECK(apart(scaled_logits(*removed, batch, mask_of_heads(model, kept)), logits) < precision.close);
      }
    });
}

TEST_CASE("heads keep their original names however often others are removed", "[conformance]") {
  for_each_row(in_double, [](const Row&, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    const auto last = everywhere(model, {{2}, {1, 3}});
    auto once = copy_of(model), twice = copy_of(model);
    once->keep(last);
    twice->keep(everywhere(model, {{0, 2, 3}, {1, 3}}));
    twice->keep(everywhere(model, {{2, 3}, {1, 3}}));
    twice->keep(last);
    CHECK(text_of(twice->heads()) == text_of(last));
    CHECK(torch::equal(logits_of(*twice, batch), logits_of(*once, batch)));
    const auto clone = copy_of(*twice);
    CHECK(text_of(clone->heads()) == text_of(last));
    CHECK(torch::equal(logits_of(*clone, batch), logits_of(*once, batch)));
    CHECK_THROWS_AS(twice->keep(everywhere(model, {{0}, {1}})), UsageError);
    CHECK(text_of(twice->heads()) == text_of(last));
  });
}

TEST_CASE("scores and weights can be looked at without changing anything", "[conformance]") {
  for (const auto& precision : precisions)
    for_each_row(precision, [&](const Row& row, Model& model, const Batch& batch) {
      torch::NoGradGuard no_grad;
      const auto reason = exemption(row, &Traits::no_weights);
      int scores_seen = 0, weights_seen = 0;
      LambdaTap tap([](At at, Site) { return at == At::scores || at == At::weights; },
                    [&](At at, Site, Tensor value) {
                      (at == At::scores ? scores_seen : weights_seen) += 1;
                      if (at == At::weights) {
                        const auto sums = value.sum(-1);
                        CHECK(((sums - 1).abs().lt(1e-5).logical_or(sums.eq(0))).all().template item<bool>());
                      }
                      return value;
                    });
      const auto fast = logits_of(model, batch);
      CHECK(apart(real(tapped_logits(model, batch, tap), batch), real(fast, batch)) < precision.close);
      if (reason.empty()) {
        CHECK(scores_seen == static_cast<int>(model.mixers().size()));
        CHECK(weights_seen == static_cast<int>(model.mixers().size()));
      }
    });
}

TEST_CASE("a tap that looks at everything changes no bit of what the instrumented path gives", "[conformance]") {
  for_each_row(precisions[0], [](const Row& row, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    LambdaTap weights([](At at, Site) { return at == At::weights; }, [](At, Site, Tensor value) { return value; });
    std::set<At> seen;
    LambdaTap all([](At, Site) { return true; },
                  [&](At at, Site, Tensor value) {
                    seen.insert(at);
                    return value;
                  });
    CHECK(torch::equal(tapped_logits(model, batch, all), tapped_logits(model, batch, weights)));
    CHECK(seen.count(At::z) == 1);
    CHECK(seen.count(At::residual_mid) == 1);
    CHECK(seen.count(At::logits) == 1);
    CHECK((seen.count(At::o) == (row.exempt.shares.empty() ? 1 : 0) || is_routed(row)));
  });
}

TEST_CASE("heads replaced by zeros equal heads of scale 0", "[conformance]") {
  for (const auto& precision : precisions)
    for_each_row(precision, [&](const Row& row, Model& model, const Batch& batch) {
      torch::NoGradGuard no_grad;
      const auto compare = [&](const std::vector<int64_t>& zeroed) {
        LambdaTap tap([](At at, Site) { return at == At::z; },
                      [&](At, Site, Tensor z) {
                        z = z.clone();
                        if (zeroed.size() == static_cast<std::size_t>(small_heads)) return torch::zeros_like(z);
                        for (auto head : zeroed) z.select(1, head).zero_();
                        return z;
                      });
        auto scale = model.ones();
        for (auto& [stack, ones] : scale)
          for (auto head : zeroed) ones.select(1, head).zero_();
        CHECK(apart(tapped_logits(model, batch, tap), scaled_logits(model, batch, scale)) < precision.close);
        CHECK(difference(logits_of(model, batch), scaled_logits(model, batch, scale)) > 1e-4);
      };
      compare({0, 1, 2, 3});
      if (!is_routed(row) && row.exempt.zeroed.empty()) compare({1, 2});  // the slots of a routed token are no heads
    });
}

TEST_CASE("each row of a batch is what it is alone", "[conformance]") {
  for (const auto& precision : precisions)
    for_each_row(precision, [&](const Row& row, Model& model, const Batch& batch) {
      if (!exemption(row, &Traits::not_row_independent).empty()) return;
      torch::NoGradGuard no_grad;
      const auto together = logits_of(model, batch);
      for (int64_t b = 0; b < 3; ++b) {
        const auto alone = logits_of(model, rows_of(batch, torch::tensor({b})));
        CHECK(apart(alone, together.narrow(0, b, 1)) < precision.close);
      }
    });
}

TEST_CASE("a cache gives what the full pass gives, token by token and in chunks", "[conformance]") {
  for (const auto& precision : precisions)
    for_each_row(precision, [&](const Row& row, Model& model, const Batch& batch) {
      if (!generates(row)) return;
      torch::NoGradGuard no_grad;
      const auto full = logits_of(model, batch);
      for (const std::vector<int64_t>& chunks :
           {std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 1, 1, 1, 1}, {5, 3}, {2, 2, 2, 2}, {7, 1}, {8}}) {
        Forward run;
        auto stepper = model.stepper(batch, run);
        int64_t read = 0;
        for (auto length : chunks) {
          const auto logits = stepper->step(batch.target_BT.narrow(1, read, length), run);
          read += length;
          INFO("after " << read << " tokens, chunk of " << length);
          CHECK(apart(logits, full.select(1, read - 1)) < precision.close);
        }
      }
      // A beam that takes other rows' places goes on as they would have.
      Forward run;
      auto stepper = model.stepper(batch, run);
      const auto places = torch::tensor({2, 0, 0}, torch::kLong);
      stepper->step(batch.target_BT.narrow(1, 0, 4), run);
      stepper->reorder(places);
      const auto moved = rows_of(batch, places);
      CHECK(apart(stepper->step(moved.target_BT.narrow(1, 4, 1), run), logits_of(model, moved).select(1, 4)) <
            precision.close);
      CHECK_THROWS_AS(stepper->step(batch.target_BT.repeat({1, 2}), run), ShapeError);
    });
}

TEST_CASE("a scale for each example is that example's scale", "[conformance]") {
  for_each_row(in_double, [](const Row&, Model& model, const Batch& batch) {
    torch::NoGradGuard no_grad;
    std::map<Stack, Tensor> shared, each;
    for (const auto& [stack, ones] : model.ones()) {
      each[stack] = noise({3, ones.size(0), ones.size(1)}, "scale/" + stack_name(stack));
      shared[stack] = each[stack][0];
    }
    const auto logits = scaled_logits(model, batch, each);
    for (int64_t b = 0; b < 3; ++b) {
      std::map<Stack, Tensor> own;
      for (const auto& [stack, scale] : each) own[stack] = scale[b];
      CHECK(difference(scaled_logits(model, batch, own)[b], logits[b]) < 1e-12);
    }
    // Beams: rows say whose scale is theirs.
    Forward run;
    run.scale = each;
    run.rows_B = torch::tensor({0, 0, 0}, torch::kLong);
    CHECK(difference(model.logits(batch, run), scaled_logits(model, batch, shared)) < 1e-12);
    CHECK(difference(scaled_logits(model, batch, model.ones()), logits_of(model, batch)) == 0);
    for (auto& [stack, scale] : shared) scale = scale.narrow(1, 0, small_heads - 1);
    CHECK_THROWS_AS(scaled_logits(model, batch, shared), ShapeError);
  });
}

TEST_CASE("the gradient of a head's scale is the sum of z . dL/dz") {  // 1905.10650
  for_each_row(in_double, [](const Row& row, Model& model, const Batch& batch) {
    const auto weight = noise({3, 8, small_vocabulary}, "loss");
    Forward run;
    run.scale = model.ones();
    for (auto& [stack, scale] : run.scale) scale.requires_grad_();
    std::map<Site, Tensor> z;
    LambdaTap tap([](At at, Site) { return at == At::z; },
                  [&](At, Site site, Tensor value) {
                    value.retain_grad();
                    return z[site] = value;
                  });
    run.taps = {&tap};
    (model.logits(batch, run) * weight).sum().backward();
    for (const auto& [stack, scale] : run.scale) {
      const auto gradient = scale.grad();
      for (int64_t layer = 0; layer < gradient.size(0); ++layer) {
        INFO(to_string(Site{stack, layer}));
        const auto& of_site = z.at({stack, layer});
        const auto by_head = (of_site * of_site.grad()).sum(at::IntArrayRef{0, 2, 3});
        if (!row.exempt.z_dot_grad_z.empty()) continue;
        if (is_routed(row))  // slots are not heads, but their sum is
          CHECK(std::abs(by_head.sum().item<double>() - gradient[layer].sum().item<double>()) < 1e-10);
        else
          CHECK(difference(by_head, gradient[layer]) < 1e-10);
      }
      if (!row.exempt.gradients.empty()) continue;
      // And that of differences, for each head.
      torch::NoGradGuard no_grad;
      constexpr double step = 1e-5;
      const auto loss = [&](int64_t layer, int64_t head, double by) {
        auto changed = model.ones();
        changed[stack][layer][head] += by;
        return (scaled_logits(model, batch, changed) * weight).sum().item<double>();
      };
      for (int64_t layer = 0; layer < gradient.size(0); ++layer)
        for (int64_t head = 0; head < gradient.size(1); ++head) {
          const auto found = (loss(layer, head, step) - loss(layer, head, -step)) / (2 * step);
          CHECK(std::abs(found - gradient[layer][head].item<double>()) < 1e-5 * (1 + std::abs(found)));
        }
    }
  });
}

TEST_CASE("initialise draws every parameter, by its name and the seed alone", "[conformance]") {
  for_each_row(precisions[0], [](const Row& row, Model& model, const Batch&) {
    for (auto& item : model.named_parameters()) {
      torch::NoGradGuard no_grad;
      item.value().fill_(std::nan(""));
    }
    initialise(model, 11);
    for (const auto& item : model.named_parameters()) {
      INFO(item.key());
      CHECK(finite(item.value()));
      CHECK(item.value().requires_grad());
    }
    const auto same = models().make(row.model, small_context());
    torch::manual_seed(99);
    initialise(*same, 11);
    bool any_differs = false;
    const auto other = models().make(row.model, small_context());
    initialise(*other, 12);
    const auto mine = model.named_parameters();
    for (const auto& item : same->named_parameters()) CHECK(torch::equal(item.value(), mine[item.key()]));
    for (const auto& item : other->named_parameters())
      any_differs = any_differs || !torch::equal(item.value(), mine[item.key()]);
    CHECK(any_differs);
    DefaultDtype guard(torch::kFloat64);  // the same numbers, to rounding, in another type
    const auto wide = models().make(row.model, small_context());
    initialise(*wide, 11);
    for (const auto& item : wide->named_parameters()) CHECK(difference(item.value(), mine[item.key()]) < 1e-6);
  });
}

TEST_CASE("axes cover each dimension that they list whole, and name all that removal changes", "[conformance]") {
  for_each_row(precisions[0], [](const Row& row, Model& model, const Batch&) {
    if (!row.exempt.axes.empty()) return;
    for (const auto& [site, mixer] : model.mixers()) {
      INFO(to_string(site));
      std::map<std::pair<std::string, int64_t>, std::map<int64_t, HeadAxis>> listed;
      const auto axes = mixer->axes();
      for (const auto& axis : axes.all()) listed[{axis.parameter, axis.dim}][axis.offset] = axis;
      const auto H = static_cast<int64_t>(mixer->heads().size());
      const auto* attention = dynamic_cast<Attention*>(mixer);
      auto parameters = mixer->named_parameters();
      for (const auto& item : mixer->named_buffers()) parameters.insert(item.key(), item.value());
      for (const auto& [place, stretches] : listed) {
        INFO(place.first << ", dim " << place.second);
        REQUIRE(parameters.contains(place.first));
        int64_t end = 0;
        for (const auto& [offset, axis] : stretches) {
          CHECK(offset == end);
          end += axis.width * (axis.unit == Unit::head ? H : attention ? attention->shape().G() : 0);
        }
        CHECK(end == parameters[place.first].size(place.second));
      }
      std::map<std::string, std::vector<int64_t>> before;
      for (const auto& item : parameters) before[item.key()] = item.value().sizes().vec();
      const auto each = entries_per_head(*mixer, axes);
      int64_t of_heads = 0;
      for (const auto& item : mixer->named_parameters()) {
        const auto mask = entries_of(*mixer, axes, item.key(), {0, 1, 2, 3});
        if (mask.defined()) of_heads += mask.sum().item<int64_t>();
      }
      CHECK(of_heads == 4 * each);
      mixer->keep({1, 3});
      for (const auto& item : mixer->named_parameters())
        for (int64_t dim = 0; dim < item.value().dim(); ++dim)
          if (item.value().size(dim) != before.at(item.key())[dim]) CHECK(listed.count({item.key(), dim}) == 1);
    }
  });
}

TEST_CASE("every entry runs LibTorch's fused kernel, in evaluation and forward and backward without dropout",
          "[conformance]") {
  for_each_row(precisions[0], [](const Row& row, Model& model, const Batch& batch) {
    if (!exemption(row, &Traits::no_weights).empty() || !row.exempt.fused.empty()) return;
    const auto check = [&](const std::map<std::string, int>& ran) {
      const auto times = [&](const std::string& name) { return ran.count(name) ? ran.at(name) : 0; };
      CHECK(times("aten::_scaled_dot_product_flash_attention_for_cpu") >= static_cast<int>(model.mixers().size()));
      CHECK(times("aten::_scaled_dot_product_attention_math") == 0);
    };
    check(operators_of([&] {
      torch::NoGradGuard no_grad;
      logits_of(model, batch);
    }));
    if (!row.exempt.fused_training.empty()) return;
    model.train();
    check(operators_of([&] { logits_of(model, batch).sum().backward(); }));
  });
}

TEST_CASE("every entry computes in bfloat16 products what it computes in float32, to their rounding", "[conformance]") {
  // Products round to 8 bits; what a residual stream of two layers sums up of it stays within a few of the last of
  // them. A token may choose another expert by it, and then gives something else: such entries must be finite alone.
  for_each_row(precisions[0], [](const Row& row, Model& model, const Batch& batch) {
    const auto full = logits_of(model, batch).detach();
    model.multiply_in(torch::kBFloat16);
    const auto rounded = logits_of(model, batch);
    CHECK(rounded.scalar_type() == torch::kFloat32);
    CHECK(finite(real(rounded, batch)));
    const bool picks = is_routed(row) || !row.exempt.picks.empty();
    if (!picks) CHECK(apart(real(rounded, batch), real(full, batch)) < 0.15);
    CHECK(difference(real(rounded, batch), real(full, batch)) > 0);
    model.train();
    Forward run;
    run.noise_seed = 5;
    auto loss = (model.logits(batch, run) * noise({3, 8, small_vocabulary}, "loss")).sum();
    for (const auto& aux : run.aux) loss = loss + aux.sum;
    loss.backward();
    for (const auto& item : model.named_parameters()) {
      INFO(item.key());
      CHECK(item.value().grad().scalar_type() == torch::kFloat32);
      CHECK(finite(item.value().grad()));
    }
    if (!generates(row)) return;
    model.eval();
    const torch::NoGradGuard no_grad;
    Forward none;
    const auto stepper = model.stepper(batch, none);
    stepper->step(batch.target_BT.narrow(1, 0, 5), none);
    const auto cached = stepper->step(batch.target_BT.narrow(1, 5, 1), none);
    if (!picks) CHECK(apart(cached, rounded.detach().select(1, 5)) < 0.15);
  });
}

namespace {

Batch on(const Batch& batch, torch::Device device) {
  const auto move = [&](const Tensor& x) { return x.defined() ? x.to(device) : x; };
  return {move(batch.source_BS), move(batch.source_mask_BS), move(batch.target_BT), move(batch.target_mask_BT),
          each(batch.side, move)};
}

/// What must hold of every entry wherever it runs, with the CPU's numbers as the reference.
void check_entries_on(torch::Device device) {
  for_each_row(in_double, [&](const Row& row, Model& model, const Batch& batch) {
    const auto weight = noise({3, 8, small_vocabulary}, "loss");
    const auto there = std::dynamic_pointer_cast<Model>(model.clone(device));
    const auto moved = on(batch, device);
    REQUIRE(there->device().type() == device.type());
    const auto pass = [&](Model& any, const Batch& of, bool training) {
      any.train(training);
      Forward run;
      run.noise_seed = 5;  // noise is drawn on the CPU and moved
      const auto logits = any.logits(of, run);
      auto loss = (logits * weight.to(logits.device())).sum();
      for (const auto& aux : run.aux) loss = loss + aux.sum;
      any.zero_grad();
      loss.backward();
      any.eval();
      return logits.detach();
    };
    for (const bool training : {false, true}) {
      const auto expected = pass(model, batch, training), got = pass(*there, moved, training);
      CHECK(got.device().type() == device.type());
      CHECK(apart(got.cpu(), expected) < 1e-9);
      const auto gradients = model.named_parameters();
      for (const auto& item : there->named_parameters()) {
        INFO(item.key());
        REQUIRE(item.value().grad().defined() ==
                gradients[item.key()].grad().defined());  // what only training draws on has none else
        if (item.value().grad().defined()) CHECK(apart(item.value().grad().cpu(), gradients[item.key()].grad()) < 1e-8);
      }
    }
    const torch::NoGradGuard no_grad;
    const auto full = logits_of(*there, moved);
    const auto kept = everywhere(model, {{0, 2}, {1}});
    auto removed = copy_of(*there);
    removed->keep(kept);
    if (exemption(row, &Traits::not_masked_equals_removed).empty())
      CHECK(apart(real(logits_of(*removed, moved), moved).cpu(),
                  real(scaled_logits(*there, moved, mask_of_heads(*there, kept)), moved).cpu()) < 1e-9);
    removed->to(torch::kCPU);
    auto removed_here = copy_of(model);
    removed_here->keep(kept);
    CHECK(apart(logits_of(*removed, batch), logits_of(*removed_here, batch)) < 1e-9);
    if (!generates(row)) return;
    Forward run;
    const auto stepper = there->stepper(moved, run);
    stepper->step(moved.target_BT.narrow(1, 0, 3), run);
    stepper->step(moved.target_BT.narrow(1, 3, 1), run);
    stepper->reorder(torch::tensor({2, 0, 1}, torch::kLong).to(device));
    const auto turned = rows_of(moved, torch::tensor({2, 0, 1}, torch::kLong).to(device));
    CHECK(apart(stepper->step(turned.target_BT.narrow(1, 4, 1), run).cpu(),
                logits_of(*there, turned).select(1, 4).cpu()) < 1e-9);
  });
}

}  // namespace

TEST_CASE("every entry gives the same wherever it runs: on the CPU, moved to the CPU") {
  check_entries_on(torch::kCPU);
}

TEST_CASE("every entry gives the same wherever it runs: on a GPU", "[cuda][conformance]") {
  if (test::skipped(!test::has_gpu(), "no GPU")) return;
  check_entries_on(torch::Device(torch::kCUDA, 0));
}

}  // namespace headlab
