#include <algorithm>

#include "modules/attention/attention.h"
#include "modules/attention/gate/heads_by_length.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/position/adarope.h"
#include "modules/attention/mix/agreement.h"
#include "modules/attention/mix/grouped_average.h"
#include "modules/attention/position/offset.h"
#include "modules/attention/position/rope.h"
#include "modules/attention/position/transformer_xl.h"
#include "modules/attention/project/collaborative.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/fuse_groups.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/base/clash.h"

namespace headlab {
namespace {

std::string nearest_multiples(int64_t value, int64_t factor) {
  const auto below = value / factor * factor, above = below + factor;
  return below > 0 ? std::to_string(below) + ", " + std::to_string(above) : std::to_string(above);
}

/// The entries that an attention is made of: "gate.windows", where each stands, and its traits.
struct Part {
  std::string name, field;
  const Traits* traits;
};

std::vector<Part> parts_of(const AttentionOptions& options) {
  std::vector<Part> parts;
  const auto add = [&](const auto& registry, const Choice& choice, const std::string& field) {
    parts.push_back({registry.catalogue().slot + "." + choice.type(), field, &registry.traits(choice.type())});
  };
  add(projects(), options.project, "project");
  for (std::size_t i = 0; i < options.then.items.size(); ++i)
    add(adapters(), options.then.items[i], "then[" + std::to_string(i) + "]");
  add(positions(), options.position, "position");
  add(scores(), options.weigh.score, "weigh.score");
  add(normalisers(), options.weigh.normalise, "weigh.normalise");
  for (std::size_t i = 0; i < options.gates.items.size(); ++i)
    add(gates(), options.gates.items[i], "gates[" + std::to_string(i) + "]");
  add(mixes(), options.mix, "mix");
  return parts;
}

/// Whether the adapter acts before positions and the cache (Adapter::store).
bool acts_first(const std::string& adapter) { return adapter == "knocking" || adapter == "fuse_groups"; }

bool plans_windows(const Choice& choice) {
  const auto& gate = choice.type();
  if (gate == "native_sparse") return choice.as<NativeSparseOptions>().window.has_value();
  return gate == "windows" || gate == "random_windows" || gate == "shuffled_windows" || gate == "adaptive_windows";
}

}  // namespace

void attention_rules(const AttentionOptions& options, int64_t width, bool cross, const std::string& prefix, Problems& problems) {
  const auto at = [&](const std::string& field) { return prefix + "." + field; };
  if (!options.head_width && width % options.heads != 0)
    problems.add(at("heads"), "expected a divisor of d_model (" + std::to_string(width) + "), or a head_width beside it, got " +
                                  std::to_string(options.heads) + "; nearest d_model: " + nearest_multiples(width, options.heads));
  const auto head_width = options.head_width.value_or(width / options.heads);
  const auto& position = options.position.type();
  if (position == "rope") {
    const auto problem = rope_problem(options.position.as<RopeOptions>(), head_width);
    if (!problem.empty()) problems.add(at("position"), problem);
  }
  if (position == "adarope") {
    const auto& adarope = options.position.as<AdaRopeOptions>();
    const bool shared_keys = options.project.type() == "grouped" && options.project.as<GroupedProjectOptions>().groups < options.heads;
    const auto problem = adarope_problem(adarope, head_width, shared_keys);
    if (!problem.empty()) problems.add(at("position"), problem);
    for (const auto& adapter : options.then.items)
      if (adapter.type() == "mix_heads" && adarope.share != "layer") {
        const auto& mixed = adapter.as<MixHeadsOptions>().mix;
        if (std::count(mixed.begin(), mixed.end(), "k") > 0)
          problems.add(at("position.share"), "adarope: expected layer beside mix_heads, whose keys are sums over heads: sums of keys that "
                                             "turn each at its own rate know no distance; got " + adarope.share);
      }
  }
  if (position == "offset" && static_cast<int64_t>(options.position.as<OffsetOptions>().offsets.size()) != options.heads)
    problems.add(at("position.offsets"), "expected an offset for each of " + std::to_string(options.heads) + " heads, got " +
                                             std::to_string(options.position.as<OffsetOptions>().offsets.size()));
  if (position == "transformer_xl") {
    const auto problem = transformer_xl_problem(width);
    if (!problem.empty()) problems.add(at("position"), problem);
    const auto& score = options.weigh.score;
    if (score.type() != "dot_product" || score.as<DotProductOptions>().scale)
      problems.add(at("weigh.score"), "expected dot_product with its own scale beside the position transformer_xl, whose part of "
                                      "the score has the same factor 1/sqrt(head width)");
  }
  if (cross && positions().traits(position).self_alone)
    problems.add(at("position"),
                 position + ": expected a self-attention; a cross-attention's queries and keys share no positions");
  if (options.project.type() == "grouped") {
    const auto groups = options.project.as<GroupedProjectOptions>().groups;
    if (options.heads % groups != 0)
      problems.add(at("project.groups"), "expected a divisor of heads (" + std::to_string(options.heads) + "), got " + std::to_string(groups));
  }
  if (const auto* agreement = dynamic_cast<const AgreementOptions*>(&options.mix.options())) {
    const auto problem = agreement_problem(*agreement, options.heads, width);
    if (!problem.empty()) problems.add(at("mix.capsules"), problem);
  }
  if (options.mix.type() == "grouped_average") {
    const auto problem = grouped_average_problem(options.mix.as<GroupedAverageOptions>(), width, options.heads,
                                                 options.value_width.value_or(head_width));
    if (!problem.empty()) problems.add(at("mix"), problem);
  }
  if (options.project.type() == "collaborative") {
    const auto problem = collaborative_problem(options.project.as<CollaborativeOptions>(), options.heads, head_width);
    if (!problem.empty()) problems.add(at("project.init"), problem);
    const auto& score = options.weigh.score;
    if (score.type() == "dot_product" && score.as<DotProductOptions>().scale)
      problems.add(at("weigh.score.scale"), "expected none beside the project collaborative, which says itself what scores are divided by (divide_by)");
  }
  if (options.project.type() == "decoupled")
    for (const auto& problem : decoupled_problems(options.project.as<DecoupledProjectOptions>(), options.heads))
      problems.add(at("project." + problem.field), problem.message);
  for (std::size_t i = 0; i < options.then.items.size(); ++i) {
    if (options.then.items[i].type() != "fuse_groups") continue;
    const auto& fuse = options.then.items[i].as<FuseGroupsOptions>();
    const auto& project = options.project;
    const auto count = project.type() == "standard" ? options.heads : project.type() == "grouped" ? project.as<GroupedProjectOptions>().groups : 0;
    for (const auto& [name, map] : {std::pair{"k_map", fuse.k_map}, {"v_map", fuse.v_map}})
      if (count > 0 && !map.empty() && static_cast<int64_t>(map.size()) != count)
        problems.add(at("then[" + std::to_string(i) + "]." + name), "expected a fusion group for each of " + std::to_string(count) +
                                                                         " key/value heads, got " + std::to_string(map.size()));
  }
  const auto mixes_groups = [](const Choice& adapter) { return adapters().traits(adapter.type()).reads_all_groups; };
  if (std::count_if(options.then.items.begin(), options.then.items.end(), mixes_groups) > 1)
    problems.add(at("then"), "expected at most one adapter that mixes heads: what follows it has a head for each component");
  for (std::size_t i = 0; i + 1 < options.then.items.size(); ++i)
    if (options.then.items[i].type() == "persistent")
      problems.add(at("then[" + std::to_string(i) + "]"),
                   "persistent: expected it to be the last adapter; what follows would take its vectors for the context's");
  for (std::size_t i = 1; i < options.then.items.size(); ++i) {
    const auto &before = options.then.items[i - 1].type(), &type = options.then.items[i].type();
    if (acts_first(type) && !acts_first(before))
      problems.add(at("then[" + std::to_string(i) + "]"), type + ": expected it before " + before + ": it acts before positions and the cache, " + before + " after them");
  }
  const auto parts = parts_of(options);
  for (const auto& part : parts)
    for (const auto& clash : part.traits->clashes)
      for (const auto& other : parts)
        if (&other != &part && speaks_of(clash, other.name))
          problems.add(at(part.field), part.name + " can't stand beside " + other.name + ": " + clash.why);
  bool routed = false;
  std::string planner;  // the gate that gives heads their windows
  for (std::size_t i = 0; i < options.gates.items.size(); ++i) {
    const auto& gate = options.gates.items[i];
    const auto where = at("gates[" + std::to_string(i) + "]");
    if (cross && gates().traits(gate.type()).self_alone)
      problems.add(where, gate.type() + ": expected a self-attention; a cross-attention's queries and keys share no positions");
    if (gate.type() == "role_masks" && gate.as<RoleMasksOptions>().roles.size() > static_cast<std::size_t>(options.heads))
      problems.add(where + ".roles", "expected at most a role for each of " + std::to_string(options.heads) + " heads, got " +
                                         std::to_string(gate.as<RoleMasksOptions>().roles.size()));
    if (gate.type() == "windows") {
      const auto count = gate.as<WindowsOptions>().windows.size();
      if (count != 1 && count != static_cast<std::size_t>(options.heads))
        problems.add(where + ".windows", "expected one window, or one for each of " + std::to_string(options.heads) + " heads, got " + std::to_string(count));
    }
    if (gate.type() == "shuffled_windows") {
      const auto count = gate.as<ShuffledWindowsOptions>().windows.size();
      if (count != static_cast<std::size_t>(options.heads))
        problems.add(where + ".windows", "expected one window for each of " + std::to_string(options.heads) + " heads, got " + std::to_string(count));
    }
    if (plans_windows(gate) && !planner.empty())
      problems.add(where, gate.type() + " can't stand beside " + planner + ": a head has one window");
    if (plans_windows(gate)) planner = gate.type();
    if (gate.type() == "heads_by_length")
      if (const auto problem = heads_by_length_problem(gate.as<HeadsByLengthOptions>(), options.heads); !problem.empty())
        problems.add(where + ".heads", problem);
    if (gate.type() == "native_sparse") {
      const auto& sparse = gate.as<NativeSparseOptions>();
      const auto groups = options.project.type() == "grouped" ? options.project.as<GroupedProjectOptions>().groups : options.heads;
      if (sparse.active + sparse.shared > groups)
        problems.add(where + ".active", "expected at most the number of key/value heads (" + std::to_string(groups) + ") with the shared ones, got " +
                                            std::to_string(sparse.active) + " and " + std::to_string(sparse.shared));
    }
    if (gate.type() == "route_experts") {
      routed = true;
      const auto k = gate.as<RouteExpertsOptions>().k, shared = gate.as<RouteExpertsOptions>().shared;
      if (shared >= k) problems.add(where + ".shared", "expected less than k (" + std::to_string(k) + "), got " + std::to_string(shared));
      if (k > options.heads)
        problems.add(where + ".k", "expected at most the number of heads (" + std::to_string(options.heads) + "), got " + std::to_string(k));
    }
  }
  if (routed) {
    const auto refuse = [&](const std::string& field, const std::string& type, const Traits& traits) {
      if (traits.needs_heads)
        problems.add(at(field),
                     type + " can't go with routed experts: it has parameters for each head, and a token's heads differ");
    };
    refuse("position", position, positions().traits(position));
    refuse("weigh.score", options.weigh.score.type(), scores().traits(options.weigh.score.type()));
  }
  const bool experts = options.project.type() == "experts", mixes = options.mix.type() == "experts";
  if (experts != mixes || experts != routed)
    problems.add(at("project"), "the project \"experts\", the mix \"experts\" and the gate \"route_experts\" go together; got project \"" +
                                    options.project.type() + "\", mix \"" + options.mix.type() + "\" and " +
                                    (routed ? "the gate" : "no such gate"));
}

}  // namespace headlab
