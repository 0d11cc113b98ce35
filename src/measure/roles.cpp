#include "src/measure/roles.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "modules/attention/call.h"
#include "modules/tensor/torch.h"
#include "src/heads/head_set.h"
#include "src/task/annotated.h"

namespace headlab {
namespace {

/// Where each token's largest weight lies, of one batch.
struct LargestPlaces : Tap {
  Tensor source_BS, target_BT;  // bool, the tokens that are there; undefined: all
  std::map<Site, Tensor> of;    // long [B,H,T], on the CPU

  bool wants(At at, Site) const override { return at == At::weights; }
  Tensor see(At, Site site, Tensor weights_BHTS, const AttentionCall* call) override {
    const auto& keys = site.stack == Stack::dec_self ? target_BT : source_BS;
    const auto of_tokens = weights_BHTS.slice(-1, call->ahead);
    const auto seen =
        keys.defined() ? of_tokens.masked_fill(keys.logical_not().unsqueeze(1).unsqueeze(1), -1) : of_tokens;
    const auto places_BHT = seen.argmax(-1).to(torch::kCPU);
    of[site] = of.count(site) ? torch::cat({of[site], places_BHT}, 2) : places_BHT;  // step by step, or all at once
    return weights_BHTS;
  }
};

/// A relation from one of its ends: "nsubj to its head", "head to its nsubj".
struct Direction {
  std::string relation;
  bool from_dependent = true;
  std::string name() const { return from_dependent ? relation + " to its head" : "head to its " + relation; }
};

struct Counts {
  std::map<int64_t, int64_t> offsets;
  std::vector<int64_t> right;  // by direction
  int64_t tokens = 0, rare = 0;
};

/// How often the best fixed offset between words is right, by direction.
struct ByOffset {
  std::map<int64_t, int64_t> offsets;
  int64_t pairs = 0;
  double best() const {
    int64_t most = 0;
    for (const auto& [offset, count] : offsets) most = std::max(most, count);
    return pairs == 0 ? 0 : static_cast<double>(most) / static_cast<double>(pairs);
  }
};

/// How often each id stands in the texts that the model reads in training.
std::vector<int64_t> frequencies(const Task& task, int64_t max_tokens) {
  constexpr int64_t examples = 5000;
  std::vector<int64_t> times;
  for (const auto& chosen : first_batches(task, "train", examples, max_tokens)) {
    const auto inputs = task.batch("train", chosen, torch::kCPU).inputs;
    const auto read = readings_of(inputs);
    const auto counts =
        (read.source_mask_BS.defined() ? read.source_BS.masked_select(read.source_mask_BS) : read.source_BS.flatten())
            .bincount();
    if (counts.numel() > static_cast<int64_t>(times.size())) times.resize(static_cast<std::size_t>(counts.numel()));
    for (int64_t id = 0; id < counts.numel(); ++id) times[static_cast<std::size_t>(id)] += counts[id].item<int64_t>();
  }
  return times;
}

double share(int64_t count, int64_t of) { return of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of); }

}  // namespace

void RolesOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("relations", relations, "dependency relations that a head may follow");
  fields.add("positional", positional, "share of tokens at one offset, from which on a head is positional")
      .at_least(0)
      .at_most(1);
  fields
      .add("syntactic", syntactic, "how much more often than the best offset a head finds a relation, to be syntactic")
      .at_least(0)
      .at_most(1);
  fields.add("rare", rare, "share of tokens that look at the rarest, from which on a head is of rare words")
      .at_least(0)
      .at_most(1);
}

nlohmann::ordered_json RolesMeasure::measure(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "roles", "weights");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto* trees_of = dynamic_cast<const KnowsTrees*>(&task);
  const auto trees = trees_of ? trees_of->trees(options_.split, options_.limit) : std::vector<AnnotatedText>();
  const auto times = frequencies(task, options_.max_tokens);
  std::vector<Direction> directions;
  for (const auto& relation : options_.relations)
    for (const bool from_dependent : {true, false}) directions.push_back({relation, from_dependent});
  std::vector<ByOffset> by_offset(directions.size());
  std::map<HeadId, Counts> counts;
  const auto source_eos = task.reads().ids.eos, target_eos = task.writes().eos;

  for (const auto& chosen : options_.batches(task)) {
    const auto inputs = task.batch(options_.split, chosen, model.device()).inputs;
    const auto read = readings_of(inputs);
    LargestPlaces seen;
    seen.target_BT = read.target_mask_BT;
    seen.source_BS = read.source_mask_BS;
    Forward run;
    run.taps = {&seen};
    model.hidden(inputs, run);
    const auto source = read.source_BS.to(torch::kCPU), target = read.target_BT.to(torch::kCPU);
    const auto there = [](const Tensor& mask, int64_t b, int64_t t) {
      return !mask.defined() || mask[b][t].item<bool>();
    };

    for (std::size_t b = 0; b < chosen.size(); ++b) {
      const auto row = static_cast<int64_t>(b);
      // The rarest tokens of the text, ends left out.
      int64_t least = -1;
      std::vector<int64_t> id_at;
      for (int64_t s = 0; s < source.size(1) && there(seen.source_BS, row, s); ++s)
        id_at.push_back(source[row][s].item<int64_t>());
      const auto frequency = [&](int64_t id) {
        return id < static_cast<int64_t>(times.size()) ? times[static_cast<std::size_t>(id)] : 0;
      };
      for (const auto id : id_at)
        if (id != source_eos && (least < 0 || frequency(id) < least)) least = frequency(id);
      const auto* tree = trees.empty() ? nullptr : &trees.at(static_cast<std::size_t>(chosen[b]));
      // Pairs of words, by direction: from, to.
      std::vector<std::vector<std::pair<int64_t, int64_t>>> pairs(directions.size());
      for (std::size_t d = 0; tree && d < directions.size(); ++d)
        for (std::size_t word = 0; word < tree->parent.size(); ++word) {
          if (tree->relation[word] != directions[d].relation || tree->parent[word] < 0) continue;
          const auto dependent = static_cast<int64_t>(word), head = tree->parent[word];
          pairs[d].push_back(directions[d].from_dependent ? std::pair(dependent, head) : std::pair(head, dependent));
          ++by_offset[d].pairs;
          ++by_offset[d].offsets[pairs[d].back().second - pairs[d].back().first];
        }
      for (const auto& [site, mixer] : model.mixers()) {
        if (!seen.of.count(site)) continue;  // no head is left, or it has no attention weights
        const bool encoder = site.stack == Stack::enc_self, self = site.stack != Stack::dec_cross;
        const auto& queries = encoder ? source : target;
        const auto& query_mask = encoder ? seen.source_BS : seen.target_BT;
        const auto place_H = seen.of.at(site)[row];
        const auto& heads = heads_with_weights(*mixer);
        for (std::size_t h = 0; h < heads.size(); ++h) {
          auto& count = counts[{site.stack, site.layer, heads[h]}];
          count.right.resize(directions.size());
          const auto places = place_H[static_cast<int64_t>(h)].contiguous();
          const auto* place = places.data_ptr<int64_t>();
          for (int64_t t = 0; t < queries.size(1) && there(query_mask, row, t); ++t) {
            if (queries[row][t].item<int64_t>() == (encoder ? source_eos : target_eos)) continue;
            ++count.tokens;
            if (self) ++count.offsets[place[t] - t];
            if (site.stack == Stack::dec_self) continue;
            const auto id = id_at[static_cast<std::size_t>(place[t])];
            count.rare += id != source_eos && frequency(id) == least;
          }
          for (std::size_t d = 0; encoder && d < directions.size(); ++d)
            for (const auto& [from, to] : pairs[d])
              count.right[d] +=
                  tree->word_at[static_cast<std::size_t>(place[tree->first[static_cast<std::size_t>(from)]])] == to;
        }
      }
    }
  }

  nlohmann::ordered_json result{{"heads", nlohmann::ordered_json::object()}};
  std::map<std::string, int64_t> of_role;
  int64_t tokens = 0;
  for (const auto& [head, count] : counts) {
    nlohmann::ordered_json one{{"role", ""}};
    std::string role;
    const auto is = [&](const std::string& kind, const std::string& what) {
      if (!role.empty()) return;
      role = kind;
      one["role"] = what;
    };
    if (!count.offsets.empty()) {
      const auto most = std::max_element(count.offsets.begin(), count.offsets.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      one["offset"] = most->first;
      one["offset_share"] = share(most->second, count.tokens);
      if (share(most->second, count.tokens) >= options_.positional)
        is("positional", "positional " + std::string(most->first > 0 ? "+" : "") + std::to_string(most->first));
    }
    if (head.stack == Stack::enc_self && !trees.empty()) {
      double most = -2;
      for (std::size_t d = 0; d < directions.size(); ++d) {
        if (by_offset[d].pairs == 0) continue;
        const auto accuracy = share(count.right[d], by_offset[d].pairs), baseline = by_offset[d].best();
        if (accuracy - baseline <= most) continue;
        most = accuracy - baseline;
        one["relation"] = directions[d].name();
        one["relation_accuracy"] = accuracy;
        one["relation_by_offset"] = baseline;
      }
      if (most >= options_.syntactic) is("syntactic", "syntactic, " + one["relation"].get<std::string>());
    }
    if (head.stack != Stack::dec_self) {
      one["rare_share"] = share(count.rare, count.tokens);
      if (share(count.rare, count.tokens) >= options_.rare) is("rare", "rare words");
    }
    if (!role.empty()) ++of_role[role];
    tokens = std::max(tokens, count.tokens);
    result["heads"][to_string(head)] = std::move(one);
  }
  for (const auto* role : {"positional", "syntactic", "rare"}) result[role] = of_role[role];
  result["tokens"] = tokens;
  return result;
}

}  // namespace headlab
