#include "src/convert/convert.h"

#include <algorithm>
#include <set>

#include "modules/model/attentions.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"
#include "src/spec/dump.h"
#include "src/task/token_loss.h"

namespace headlab {
namespace {

std::map<Site, const Attention*> attentions_in(const Model& model) {
  std::map<Site, const Attention*> found;
  for (const auto& [site, mixer] : model.mixers())
    if (const auto* attention = dynamic_cast<const Attention*>(mixer)) found[site] = attention;
  return found;
}

std::vector<Convertible> chosen(const Model& model, const Choice& options, const ConvertOptions& how) {
  const auto described = attentions_of(options);
  std::vector<Convertible> found;
  for (const auto& [site, attention] : attentions_in(model)) {
    const auto named = [&](const auto& list, const auto& value) {
      return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
    };
    if (described.count(site) && named(how.stacks, stack_name(site.stack)) && named(how.layers, site.layer))
      found.push_back({site, attention});
  }
  if (found.empty())
    throw UsageError("convert: no attention of the model stands in the stacks and layers named; expected one at least");
  return found;
}

/// The heads of each attention, all of them where it has another number originally.
HeadTable kept_heads(const Model& model, const std::map<Site, AttentionOptions>& made) {
  auto kept = model.heads();
  const auto before = attentions_in(model);
  for (const auto& [site, options] : made) {
    if (before.at(site)->original_heads() == options.heads) continue;
    auto& heads = kept[site.stack][static_cast<std::size_t>(site.layer)];
    heads.resize(static_cast<std::size_t>(options.heads));
    for (std::size_t h = 0; h < heads.size(); ++h) heads[h] = static_cast<int64_t>(h);
  }
  return kept;
}

void copy_equal(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  const auto old = named_tensors(from);
  for (auto& [name, tensor] : named_tensors(to))
    if (const auto found = old.find(name); found != old.end() && found->second.sizes() == tensor.sizes())
      tensor.copy_(found->second);
}

int64_t cache_of(const Model& model) {
  int64_t numbers = 0;
  for (const auto& [site, mixer] : model.mixers()) numbers += mixer->cache_numbers();
  return numbers;
}

nlohmann::ordered_json largest_of(const nlohmann::ordered_json& attentions) {
  auto largest = nlohmann::ordered_json::object();
  for (const auto& [site, figures] : attentions.items())
    for (const auto& [name, value] : figures.items())
      if (value.is_number() && (!largest.contains(name) || value.get<double>() > largest[name].get<double>()))
        largest[name] = value;
  return largest;
}

/// Of all logits of some validation examples (the longest batch's).
nlohmann::ordered_json logit_differences(Model& before, Model& after, const Task& task) {
  const torch::NoGradGuard no_grad;
  const Mode first(before, false), second(after, false);
  const auto batch = task.batch("valid", first_batches(task, "valid", 32, 4096).front(), before.device());
  Forward run, again;
  const auto a = target_logits(before, batch, run).to(torch::kDouble),
             b = target_logits(after, batch, again).to(torch::kDouble);
  return {{"largest_difference", (a - b).abs().max().item<double>()},
          {"relative_difference", ((a - b).norm() / a.norm()).item<double>()}};
}

}  // namespace

void ConvertOptions::describe(Fields& fields) {
  fields.add("to", to, "what the attentions become").required();
  fields.add("stacks", stacks, "attentions of these stacks alone")
      .one_of({"enc.self", "dec.self", "dec.cross"})
      .means("empty: all");
  fields.add("layers", layers, "attentions of these layers alone, the first is 0").at_least(0).means("empty: all");
}

Converted convert(Model& model, const Choice& options, const ConvertOptions& how, const Task& task, uint64_t seed,
                  const MakeModel& make) {
  const auto attentions = chosen(model, options, how);
  const auto conversion = conversions().make(how.to);
  conversion->look({model, task, attentions, seed});
  std::map<Site, AttentionOptions> made;
  for (const auto& [site, from] : attentions) made.emplace(site, conversion->options(*from, site));

  Converted result{with_attentions(options, made), nullptr, {}};
  Problems problems;
  result.options.options().rules(problems);
  if (!problems.found.empty())
    throw UsageError("convert: the attentions that " + how.to.type() +
                     " makes break a rule: " + problems.found.front().field + ": " + problems.found.front().message);
  result.model = make(result.options, kept_heads(model, made));
  const auto device = result.model->device();
  result.model->to(torch::kCPU);  // where generators draw
  initialise(*result.model, seed);
  result.model->to(device);
  copy_equal(model, *result.model);

  const auto there = attentions_in(*result.model);
  auto figures = nlohmann::ordered_json::object();
  const torch::NoGradGuard no_grad;
  for (const auto& [site, from] : attentions) {
    auto* to = const_cast<Attention*>(there.at(site));
    if (dump(to->options()) != dump(made.at(site)))
      throw UsageError("convert: " + to_string(site) +
                       ": its layer makes attentions of other options than are written for it, and can't be converted");
    figures[to_string(site)] = conversion->weights(*from, *to, site);
  }
  result.report = {{"parameters_before", model.parameter_count()},
                   {"parameters_after", result.model->parameter_count()},
                   {"cache_before", cache_of(model)},
                   {"cache_after", cache_of(*result.model)},
                   {"attentions", figures},
                   {"largest", largest_of(figures)},
                   {"logits", logit_differences(model, *result.model, task)}};
  return result;
}

}  // namespace headlab
