#include "modules/attention/rules.h"

#include <algorithm>
#include <functional>

#include "modules/attention/project/standard.h"
#include "modules/base/clash.h"

namespace headlab {
namespace {

std::string nearest_multiples(int64_t value, int64_t factor) {
  const auto below = value / factor * factor, above = below + factor;
  return below > 0 ? std::to_string(below) + ", " + std::to_string(above) : std::to_string(above);
}

/// One of the entries that an attention is made of.
struct Part {
  std::string name, field;  // "gate.windows", "gates[0]"
  std::size_t index;        // in its list
  const Choice* choice;
  const Traits* traits;
  std::function<void(const Around&)> check;  // its own rule
};

/// All of them in the order of the walk.
std::vector<Part> parts_of(const AttentionOptions& options) {
  std::vector<Part> parts;
  const auto add = [&](const auto& registry, const Choice& choice, const std::string& field, std::size_t index = 0) {
    parts.push_back({registry.catalogue().slot + "." + choice.type(), field, index, &choice,
                     &registry.traits(choice.type()), [&](const Around& around) { registry.check(choice, around); }});
  };
  const auto add_all = [&](const auto& registry, const Choices& choices, const std::string& field) {
    for (std::size_t i = 0; i < choices.items.size(); ++i)
      add(registry, choices.items[i], field + "[" + std::to_string(i) + "]", i);
  };
  add(projects(), options.project, "project");
  add_all(adapters(), options.then, "then");
  add(positions(), options.position, "position");
  add(scores(), options.weigh.score, "weigh.score");
  add(normalisers(), options.weigh.normalise, "weigh.normalise");
  add_all(gates(), options.gates, "gates");
  add(mixes(), options.mix, "mix");
  return parts;
}

void adapter_order(const AttentionAround& around) {
  const auto& list = around.options.then.items;
  const auto traits = [](const Choice& adapter) { return adapters().traits(adapter.type()); };
  if (std::count_if(list.begin(), list.end(), [&](const Choice& one) { return traits(one).reads_all_groups; }) > 1)
    around.beside("then",
                  "expected at most one adapter that mixes heads: what follows it has a head for each component");
  for (std::size_t i = 1; i < list.size(); ++i)
    if (traits(list[i]).before_cache && !traits(list[i - 1]).before_cache)
      around.beside("then[" + std::to_string(i) + "]", list[i].type() + ": expected it before " + list[i - 1].type() +
                                                           ": it acts before positions and the cache, " +
                                                           list[i - 1].type() + " after them");
}

}  // namespace

std::optional<int64_t> AttentionAround::key_heads() const {
  if (options.project.type() == "standard") return options.heads;
  if (const auto* grouped = dynamic_cast<const GroupedProjectOptions*>(&options.project.options()))
    return grouped->groups;
  return std::nullopt;
}

void attention_rules(const AttentionOptions& options, int64_t width, bool cross, const std::string& prefix,
                     Problems& problems) {
  AttentionAround around(prefix, options, width, cross, problems);
  if (!options.head_width && width % options.heads != 0)
    around.beside("heads", "expected a divisor of d_model (" + std::to_string(width) +
                               "), or a head_width beside it, got " + std::to_string(options.heads) +
                               "; nearest d_model: " + nearest_multiples(width, options.heads));
  adapter_order(around);
  const auto parts = parts_of(options);
  const Part* planner = nullptr;  // the gate that gives heads their windows
  for (const auto& part : parts) {
    const auto& type = part.choice->type();
    if (cross && part.traits->self_alone)
      around.beside(part.field,
                    type + ": expected a self-attention; a cross-attention's queries and keys share no positions");
    for (const auto& clash : part.traits->clashes)
      for (const auto& other : parts)
        if (&other != &part && speaks_of(clash, other.name))
          around.beside(part.field, part.name + " can't stand beside " + other.name + ": " + clash.why);
    if (!part.traits->gives_windows || !part.traits->gives_windows(part.choice->options())) continue;
    if (planner)
      around.beside(part.field, type + " can't stand beside " + planner->choice->type() + ": a head has one window");
    planner = &part;
  }
  for (const auto& part : parts) {
    around.at = prefix + "." + part.field;
    around.index = part.index;
    part.check(around);
  }
}

}  // namespace headlab
