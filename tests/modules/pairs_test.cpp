// Any two entries of different slots stand in one model, or a rule says why not. Those refusals are read as text:
// tests/modules/pairs.txt; with HEADLAB_WRITE_PAIRS=1 they are printed ("refused ...") and nothing is compared. Label:
// [pairs]. 1,825 pairs take a minute and a half of one core, of a budget of five: a pair may take a sixth of a second.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/heads_by_length.h"
#include "modules/attention/gate/l0_round.h"
#include "modules/attention/gate/random_windows.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/position/offset.h"
#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/persistent.h"
#include "modules/attention/project/standard.h"
#include "modules/base/atomic_file.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/mixer/ngram_and_attention.h"
#include "src/export/single_stack.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"

namespace headlab {
namespace {

/// What a sample changes: the layers of a model, and what the model says of all of them.
struct Built {
  StackOptions& layers;
  ModelOptions& model;
  AttentionOptions& attention() const { return layers.attention; }
};
using Change = std::function<void(Built)>;

/// One entry, and how it is put into a model.
struct Sample {
  std::string slot, entry;
  Change change;
  std::string name() const { return slot + "." + entry; }
};

/// Entries whose defaults don't fit four heads of width 2, or that need others beside them.
const std::map<std::string, Change>& special() {
  static const std::map<std::string, Change> changes{
      {"project.grouped", [](Built b) { b.attention().project.as<GroupedProjectOptions>().groups = 2; }},
      {"project.decoupled",
       [](Built b) {
         b.attention().project.as<DecoupledProjectOptions>().k_map = {0, 0, 1, 1};
         b.attention().project.as<DecoupledProjectOptions>().v_map = {0, 1, 1, 0};
       }},
      {"gate.windows", [](Built b) { b.attention().gates.items.back().as<WindowsOptions>().windows = {2, 0, 3, 0}; }},
      {"gate.random_windows",
       [](Built b) { b.attention().gates.items.back().as<RandomWindowsOptions>().set = {1, 2, 3, 0}; }},
      {"gate.shuffled_windows",
       [](Built b) { b.attention().gates.items.back().as<ShuffledWindowsOptions>().windows = {1, 0, 2, 2}; }},
      {"gate.adaptive_windows",
       [](Built b) { b.attention().gates.items.back().as<AdaptiveWindowsOptions>().set = {2, 4}; }},
      {"gate.role_masks",
       [](Built b) { b.attention().gates.items.back().as<RoleMasksOptions>().roles = {"a", "", "b"}; }},
      {"gate.heads_by_length",
       [](Built b) {
         b.attention().gates.items.back().as<HeadsByLengthOptions>().heads = {1, 3, 4};
         b.attention().gates.items.back().as<HeadsByLengthOptions>().thresholds = {5, 7};
       }},
      {"mixer.heads_by_length",
       [](Built b) {
         b.layers.mixer.as<SeparateHeadsOptions>().heads = {2, 4};
         b.layers.mixer.as<SeparateHeadsOptions>().thresholds = {6};
       }},
      {"mixer.ngram_and_attention", [](Built b) { b.layers.mixer.as<NgramAndAttentionOptions>().heads = 2; }},
      {"gate.hard_concrete", [](Built b) { b.attention().gates.items.back().as<HardConcreteOptions>().penalty = 0.1; }},
      {"gate.l0_round", [](Built b) { b.attention().gates.items.back().as<L0RoundOptions>().penalty = 0.1; }},
      // Weights that are divided by their sum hold it fixed in the backward pass: differences would not be the
      // gradient.
      {"gate.route_experts", [](Built b) { b.attention().gates.items.back().as<RouteExpertsOptions>().norm = "none"; }},
      {"adapter.persistent", [](Built b) { b.attention().then.items.back().as<PersistentOptions>().vectors = 3; }},
      {"position.offset", [](Built b) { b.attention().position.as<OffsetOptions>().offsets = {0, 1, 2, 3}; }},
  };
  return changes;
}

/// Parts of one mechanism, which go together; the others of it are told by the first.
const std::map<std::string, std::vector<std::string>>& together() {
  static const std::map<std::string, std::vector<std::string>> parts{
      {"project.experts", {"gate.route_experts", "mix.experts"}},
      {"gate.route_experts", {"project.experts", "mix.experts"}},
      {"mix.experts", {"project.experts", "gate.route_experts"}}};
  return parts;
}

/// How an entry of a slot is chosen.
Change chosen(const std::string& slot, const std::string& entry) {
  const auto into = [&](auto&& of) { return Change([=](Built b) { of(b).choose(entry); }); };
  if (slot == "project") return into([](Built b) -> Choice& { return b.attention().project; });
  if (slot == "position") return into([](Built b) -> Choice& { return b.attention().position; });
  if (slot == "score") return into([](Built b) -> Choice& { return b.attention().weigh.score; });
  if (slot == "normalise") return into([](Built b) -> Choice& { return b.attention().weigh.normalise; });
  if (slot == "mix") return into([](Built b) -> Choice& { return b.attention().mix; });
  if (slot == "mixer") return into([](Built b) -> Choice& { return b.layers.mixer; });
  if (slot == "block") return into([](Built b) -> Choice& { return b.layers.block; });
  if (slot == "feed_forward") return into([](Built b) -> Choice& { return b.layers.feed_forward; });
  if (slot == "residual") return into([](Built b) -> Choice& { return b.model.residual; });
  if (slot == "norm") return into([](Built b) -> Choice& { return b.model.norm; });
  if (slot == "added_position") return into([](Built b) -> Choice& { return b.model.embedding.position; });
  if (slot == "adapter") return [=](Built b) { b.attention().then.items.emplace_back(adapter_catalogue, entry); };
  if (slot == "gate") return [=](Built b) { b.attention().gates.items.emplace_back(gate_catalogue, entry); };
  throw std::logic_error("no slot " + slot);
}

Sample sample_of(const std::string& slot, const std::string& entry) {
  Sample sample{slot, entry, chosen(slot, entry)};
  if (const auto found = special().find(sample.name()); found != special().end())
    sample.change = [choose = sample.change, more = found->second](Built b) {
      choose(b);
      more(b);
    };
  return sample;
}

std::string slot_in(const std::string& name) { return name.substr(0, name.find('.')); }
std::string entry_in(const std::string& name) { return name.substr(name.find('.') + 1); }

/// With what goes together with an entry.
void apply(const Sample& sample, Built b) {
  sample.change(b);
  if (const auto found = together().find(sample.name()); found != together().end())
    for (const auto& other : found->second) sample_of(slot_in(other), entry_in(other)).change(b);
}

const std::vector<const Catalogue*>& slots() {
  static const std::vector<const Catalogue*> all{
      &project_catalogue(),       &adapter_catalogue(),  &position_catalogue(), &score_catalogue(),
      &normalise_catalogue(),     &gate_catalogue(),     &mix_catalogue(),      &mixer_catalogue(),
      &block_catalogue(),         &residual_catalogue(), &norm_catalogue(),     &feed_forward_catalogue(),
      &added_position_catalogue()};
  return all;
}

/// Whether the model has to be one that reads both ways.
template <class Entries>
bool both_ways(const Entries& registry, const std::string& entry) {
  return registry.traits(entry).whole_text;
}

bool reads_both_ways(const Sample& sample) {
  if (sample.slot == "gate") return both_ways(gates(), sample.entry);
  if (sample.slot == "mixer") return both_ways(mixers(), sample.entry);
  if (sample.slot == "block") return both_ways(blocks(), sample.entry);
  return false;
}

const std::set<std::string> passes_gradients_by_definition{"gate.l0_round"};

/// One text of 8 tokens, three rows, some shorter; roles of it for those that ask.
Batch text() {
  constexpr int64_t T = 8;
  return {{},
          {},
          random_ids({3, T}, small_vocabulary, "target"),
          mask_of({T - 1, T, T - 3}, T),
          {{role_side("a"), noise({3, T, T}, "role a").gt(0)}, {role_side("b"), noise({3, T, T}, "role b").gt(0)}}};
}

/// The rules that forbid the pair, one after another; nothing: it is allowed, and `choice` is its model.
std::string refused(const Sample& a, const Sample& b, bool whole, Choice& choice) {
  Problems problems;
  if (whole) {
    auto options = small_encoder_only();
    options.encoder.layers = 1;
    for (const auto* one : {&a, &b}) apply(*one, {options.encoder, options});
    options.rules(problems);
    choice = model_choice("encoder_only", options);
  } else {
    auto options = small_decoder_only();
    options.decoder.layers = 1;
    for (const auto* one : {&a, &b}) apply(*one, {options.decoder, options});
    options.rules(problems);
    choice = model_choice("decoder_only", options);
  }
  std::string text;
  for (const auto& problem : problems.found)
    text += (text.empty() ? "" : "; ") + problem.field + ": " + problem.message;
  return text;
}

void shapes_and_gradients(Model& model, const Batch& batch, bool differences) {
  const auto weight = noise({3, 8, small_vocabulary}, "loss") * batch.target_mask_BT.unsqueeze(-1);
  model.train();
  const auto loss = [&] {
    Forward run;
    run.noise_seed = 5;
    auto sum = (model.logits(batch, run) * weight).sum();
    for (const auto& aux : run.aux) sum = sum + aux.sum;
    return sum;
  };
  Forward run;
  CHECK((model.logits(batch, run).sizes() == torch::IntArrayRef{3, 8, small_vocabulary}));
  model.zero_grad();
  loss().backward();
  torch::NoGradGuard no_grad;
  double expected = 0;
  std::vector<std::pair<Tensor, Tensor>> along;
  for (auto& item : model.named_parameters()) {
    const auto direction = noise(item.value().sizes(), "direction/" + item.key());
    along.emplace_back(item.value(), direction);
    if (item.value().grad().defined()) expected += (item.value().grad() * direction).sum().item<double>();
  }
  REQUIRE(std::isfinite(expected));
  if (!differences) return;
  constexpr double step = 1e-6;
  const auto moved = [&](double by) {
    for (auto& [value, direction] : along) value.add_(direction, by);
    const auto at = loss().item<double>();
    for (auto& [value, direction] : along) value.add_(direction, -by);
    return at;
  };
  const auto found = (moved(step) - moved(-step)) / (2 * step);
  CHECK(std::abs(found - expected) < 1e-5 * (1 + std::abs(expected)));
}

void causality_and_cache(Model& model, const Batch& batch, const Tensor& full) {
  auto changed = batch;
  changed.target_BT = batch.target_BT.clone();
  changed.target_BT.narrow(1, 5, 3).copy_((batch.target_BT.narrow(1, 5, 3) + 1) % small_vocabulary);
  Forward run;
  CHECK(difference(model.logits(changed, run).narrow(1, 0, 5), full.narrow(1, 0, 5)) < 1e-12);
  for (const std::vector<int64_t>& chunks : {std::vector<int64_t>{1, 1, 1, 1, 1}, {4, 2, 1}}) {
    Forward of_stepper;
    const auto stepper = model.stepper({}, of_stepper);
    int64_t read = 0;
    for (const auto length : chunks) {
      const auto logits = stepper->step(batch.target_BT.narrow(1, read, length), of_stepper);
      read += length;
      INFO("after " << read << " tokens, chunk of " << length);
      CHECK(difference(logits, full.select(1, read - 1)) < 1e-10);
    }
  }
}

/// All that is asked of a model. An exported file is compared with the model at other batch sizes and lengths before it
/// is written.
void stands(const Choice& choice, const Batch& batch, bool whole, bool differences, const std::filesystem::path& file) {
  const auto model = make_model(choice);
  shapes_and_gradients(*model, batch, differences);
  model->eval();
  torch::NoGradGuard no_grad;
  const auto full = logits_of(*model, batch);
  CHECK(std::isfinite(full.abs().max().item<double>()));
  if (!whole) causality_and_cache(*model, batch, full);
  if (!file.empty()) CHECK(export_single_stack(*model, file, {0, 1, 2}, {}).max_difference < 1e-10);
}

std::map<std::string, std::string> expected_refusals() {
  std::map<std::string, std::string> expected;
  std::istringstream lines(read_file(test::in_source("tests/modules/pairs.txt")));
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find(": "); at != std::string::npos) expected[line.substr(0, at)] = line.substr(at + 2);
  return expected;
}

/// All pairs of the slot's entries with those of the slots that stand after it in the list.
void walk(std::size_t slot) {
  DefaultDtype guard(torch::kFloat64);
  Scratch folder;
  const auto batch = text();
  const auto expected = expected_refusals();
  for (std::size_t other = slot + 1; other < slots().size(); ++other)
    for (const auto& first : slots()[slot]->names())
      for (const auto& second : slots()[other]->names()) {
        const auto a = sample_of(slots()[slot]->slot, first), b = sample_of(slots()[other]->slot, second);
        const auto pair = a.name() + " + " + b.name();
        if (const auto found = together().find(a.name());
            found != together().end() && std::count(found->second.begin(), found->second.end(), b.name()) > 0)
          continue;
        INFO(pair);
        const bool whole = reads_both_ways(a) || reads_both_ways(b);
        Choice choice(model_catalogue, "decoder_only");
        const auto why = refused(a, b, whole, choice);
        const auto known = expected.find(pair);
        if (std::getenv("HEADLAB_WRITE_PAIRS")) {
          if (!why.empty()) std::cout << "refused " << pair << ": " << why << "\n";
        } else {
          CHECK(why == (known == expected.end() ? "" : known->second));
        }
        if (!why.empty()) continue;
        const bool by_definition =
            passes_gradients_by_definition.count(a.name()) + passes_gradients_by_definition.count(b.name()) > 0;
        // Roles are told by data, which an exported file has not; what changes no step of an attention is exported
        // elsewhere.
        const bool exports = b.slot != "norm" && b.slot != "added_position" && a.name() != "gate.role_masks" &&
                             b.name() != "gate.role_masks";
        stands(choice, batch, whole, !by_definition, exports ? folder / "pair.pt" : "");
      }
}

}  // namespace

TEST_CASE("a projection combines with every entry of the other slots, or a rule says why not", "[pairs]") { walk(0); }
TEST_CASE("an adapter combines with every entry of the slots after it, or a rule says why not", "[pairs]") { walk(1); }
TEST_CASE("a position combines with every entry of the slots after it, or a rule says why not", "[pairs]") { walk(2); }
TEST_CASE("scores and normalisers combine with every entry of the slots after them, or a rule says why not",
          "[pairs]") {
  walk(3);
  walk(4);
}
TEST_CASE("a gate combines with every entry of the slots after it, or a rule says why not", "[pairs]") { walk(5); }
TEST_CASE("a mix combines with every entry of the slots after it, or a rule says why not", "[pairs]") { walk(6); }
TEST_CASE("mixers and blocks combine with every entry of the slots after them, or a rule says why not", "[pairs]") {
  walk(7);
  walk(8);
}
TEST_CASE("residuals, norms, networks and positions of a layer combine, or a rule says why not", "[pairs]") {
  for (std::size_t slot = 9; slot < slots().size(); ++slot) walk(slot);
}

TEST_CASE(
    "shared dimensions, rates of its own, sparse weights, tokens that pick heads and capsules stand in one attention",
    "[pairs]") {
  DefaultDtype guard(torch::kFloat64);
  Scratch folder;
  auto options = small_decoder_only();
  for (const auto* name : {"project.collaborative", "position.adarope", "normalise.sparsemax", "gate.native_sparse",
                           "mix.dynamic_capsules"})
    sample_of(slot_in(name), entry_in(name)).change({options.decoder, options});
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.empty());
  stands(model_choice("decoder_only", options), text(), false, true, folder / "five.pt");
}

}  // namespace headlab
