#include <algorithm>

#include "modules/attention/attention.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/position/offset.h"
#include "modules/attention/position/rope.h"
#include "modules/attention/position/transformer_xl.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/dot_product.h"

namespace headlab {
namespace {

std::string nearest_multiples(int64_t value, int64_t factor) {
  const auto below = value / factor * factor, above = below + factor;
  return below > 0 ? std::to_string(below) + ", " + std::to_string(above) : std::to_string(above);
}

bool plans_windows(const std::string& gate) {
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
  const auto mixes_groups = [](const Choice& adapter) { return adapters().traits(adapter.type()).reads_all_groups; };
  if (std::count_if(options.then.items.begin(), options.then.items.end(), mixes_groups) > 1)
    problems.add(at("then"), "expected at most one adapter that mixes heads: what follows it has a head for each component");
  for (std::size_t i = 0; i + 1 < options.then.items.size(); ++i)
    if (options.then.items[i].type() == "persistent")
      problems.add(at("then[" + std::to_string(i) + "]"),
                   "persistent: expected it to be the last adapter; what follows would take its vectors for the context's");
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
    if (plans_windows(gate.type()) && !planner.empty())
      problems.add(where, gate.type() + " can't stand beside " + planner + ": a head has one window");
    if (plans_windows(gate.type())) planner = gate.type();
    if (gate.type() == "route_experts") {
      routed = true;
      const auto k = gate.as<RouteExpertsOptions>().k, shared = gate.as<RouteExpertsOptions>().shared;
      if (shared >= k) problems.add(where + ".shared", "expected less than k (" + std::to_string(k) + "), got " + std::to_string(shared));
      if (k > options.heads)
        problems.add(where + ".k", "expected at most the number of heads (" + std::to_string(options.heads) + "), got " + std::to_string(k));
    }
  }
  if (routed) {
    for (const auto& gate : options.gates.items)
      if (gate.type() != "route_experts")
        problems.add(at("gates"), gate.type() + " can't stand beside route_experts, whose heads differ from token to token");
    const auto refuse = [&](const std::string& field, const std::string& type, const Traits& traits) {
      if (traits.needs_heads)
        problems.add(at(field),
                     type + " can't go with routed experts: it has parameters for each head, and a token's heads differ");
    };
    refuse("position", position, positions().traits(position));
    refuse("weigh.score", options.weigh.score.type(), scores().traits(options.weigh.score.type()));
    if (!options.then.items.empty()) problems.add(at("then"), "adapters can't follow routed experts, whose heads differ from token to token");
  }
  const bool experts = options.project.type() == "experts", mixes = options.mix.type() == "experts";
  if (experts != mixes || experts != routed)
    problems.add(at("project"), "the project \"experts\", the mix \"experts\" and the gate \"route_experts\" go together; got project \"" +
                                    options.project.type() + "\", mix \"" + options.mix.type() + "\" and " +
                                    (routed ? "the gate" : "no such gate"));
}

}  // namespace headlab
