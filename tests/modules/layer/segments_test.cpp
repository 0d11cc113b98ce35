#include "modules/layer/segments.h"

#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/project/persistent.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

SegmentOptions segments(int64_t length, std::optional<int64_t> memory = std::nullopt) {
  SegmentOptions options;
  options.length = length;
  options.memory = memory;
  return options;
}

/// Attentions whose calls depend on where queries and keys stand.
std::vector<std::pair<std::string, AttentionOptions>> attentions() {
  std::vector<std::pair<std::string, AttentionOptions>> all{{"plain", small_attention()}};
  const auto add = [&](const std::string& name, const std::function<void(AttentionOptions&)>& change) {
    all.emplace_back(name, small_attention());
    change(all.back().second);
  };
  using A = AttentionOptions;
  const auto windows = [] {
    Choice choice(gate_catalogue, "windows");
    choice.as<WindowsOptions>().windows = {2, 0, 5, 3};
    return choice;
  };
  add("rope, groups, windows", [&](A& a) {
    a.project.choose("grouped");
    a.project.as<GroupedProjectOptions>().groups = 2;
    a.position.choose("rope");
    a.gates.items = {windows()};
  });
  add("transformer_xl, persistent, windows", [&](A& a) {
    a.position.choose("transformer_xl");
    a.then.items.emplace_back(adapter_catalogue, "persistent");
    a.then.items.back().as<PersistentOptions>().vectors = 3;
    a.gates.items = {windows()};
  });
  add("learned alibi", [](A& a) { a.position.choose("alibi"); });
  add("additive", [](A& a) { a.weigh.score.choose("additive"); });
  add("experts", [](A& a) {
    a.project.choose("experts");
    a.mix.choose("experts");
    a.gates.items = {Choice(gate_catalogue, "route_experts")};
  });
  return all;
}

/// The same attention as one call that hides what the segments hide.
Tensor in_one_call(Attention& attention, const Tensor& x, int64_t L, int64_t M, Forward& run) {
  const auto T = x.size(1);
  auto see = causal();
  see.allowed_BTS = torch::zeros({T, T}, torch::kBool);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t s = 0; s <= t; ++s) see.allowed_BTS[t][s] = s >= t / L * L - M;
  return attention.forward(call_of(x, run, see));
}

}  // namespace

TEST_CASE("segments read one after another see what one call sees that hides what lies before the memory") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({2, 11, small_width}, "x");
  for (const auto& [name, options] : attentions()) {
    const auto attention = make_attention(options, small_width);
    for (const auto& [L, M] :
         {std::pair<int64_t, int64_t>{4, 4}, {4, 0}, {3, 2}, {1, 3}, {3, 7}, {11, 0}, {20, 20}, {4, 100}}) {
      INFO(name << ", segments of " << L << " with a memory of " << M);
      Forward run;
      const auto parts = attend_in_segments(*attention, segments(L, M), call_of(x, run, causal()));
      CHECK(difference(parts, in_one_call(*attention, x, L, M, run)) < 1e-12);
      // A tap is shown the whole text in one call.
      int calls = 0;
      LambdaTap tap([](At at, Site) { return at == At::weights; },
                    [&](At, Site, const Tensor& w) {
                      ++calls;
                      CHECK(w.size(2) == 11);
                      return w;
                    });
      if (name != "experts") {
        Forward seen;
        seen.taps = {&tap};
        CHECK(difference(attend_in_segments(*attention, segments(L, M), call_of(x, seen, causal())), parts) < 1e-12);
        CHECK(calls == 1);
      }
      if (M >= 11 || L >= 11) CHECK(difference(parts, attention->forward(call_of(x, run, causal()))) < 1e-12);
    }
  }
}

TEST_CASE("no gradient enters what a segment remembers, but the keys and values made of it learn") {
  DefaultDtype guard(torch::kFloat64);
  const auto attention = make_attention(small_attention(), small_width);
  const auto x = noise({1, 6, small_width}, "x").requires_grad_();
  Forward run;
  const auto y = attend_in_segments(*attention, segments(3), call_of(x, run, causal()));
  const auto weight = noise({1, 3, small_width}, "weight");
  const auto loss = (y.narrow(1, 3, 3) * weight).sum();  // of the second segment alone
  const auto named = attention->named_parameters();
  std::vector<Tensor> wanted{x};
  for (const auto& item : named) wanted.push_back(item.value());
  const auto got = torch::autograd::grad({loss}, wanted);
  CHECK(got[0].narrow(1, 0, 3).abs().max().item<double>() == 0);
  CHECK(got[0].narrow(1, 3, 3).abs().min().item<double>() > 0);
  // What the second segment sees of the first: moving it moves the loss.
  auto moved = x.detach().clone();
  moved.narrow(1, 0, 3) += 0.1;
  CHECK(difference(attend_in_segments(*attention, segments(3), call_of(moved, run, causal())).narrow(1, 3, 3),
                   y.narrow(1, 3, 3)) > 1e-3);

  // The same with the memory as a constant beside a segment that stands for itself: six tokens whose first three are no
  // variables.
  const auto past = x.detach().narrow(1, 0, 3);
  const auto here = x.detach().narrow(1, 3, 3).clone().requires_grad_();
  const auto again = (in_one_call(*attention, torch::cat({past, here}, 1), 3, 3, run).narrow(1, 3, 3) * weight).sum();
  CHECK(again.item<double>() == Approx(loss.item<double>()).margin(1e-12));
  wanted[0] = here;
  const auto expected = torch::autograd::grad({again}, wanted);
  CHECK(difference(got[0].narrow(1, 3, 3), expected[0]) < 1e-12);
  std::size_t i = 1;
  for (const auto& item : named) {
    INFO(item.key());
    CHECK(difference(got[i], expected[i]) < 1e-12);
    if (item.key() == "project.weight") CHECK(got[i].abs().max().item<double>() > 1e-3);
    ++i;
  }
}

TEST_CASE("what a token sees reaches one memory further back with each layer") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto options = small_decoder_only();
  options.segments = segments(3, 2);
  const auto model = make_model(model_choice("decoder_only", options));  // two layers
  auto ids = random_ids({1, 12}, small_vocabulary, "ids");
  Batch batch;
  batch.target_BT = ids;
  const auto before = logits_of(*model, batch);
  for (int64_t changed = 0; changed < 12; ++changed) {
    auto other = ids.clone();
    other[0][changed] = ids[0][changed].item<int64_t>() == 5 ? 6 : 5;
    batch.target_BT = other;
    const auto after = logits_of(*model, batch);
    for (int64_t t = 0; t < 12; ++t) {
      INFO("token " << changed << " and what is said at " << t);
      // Layer 2 looks back to first = start - 2, and layer 1 from there to the start of first's segment - 2.
      const auto first = std::max<int64_t>(t / 3 * 3 - 2, 0), deepest = first / 3 * 3 - 2;
      const bool seen = changed <= t && changed >= deepest;
      CHECK(torch::equal(after.select(1, t), before.select(1, t)) == !seen);
    }
  }
}

TEST_CASE("a model that reads by segments writes token by token what it says of the whole text") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const auto& [name, attention] : attentions()) {
    INFO(name);
    auto options = small_decoder_only(attention);
    options.segments = segments(3, 4);
    const auto model = make_model(model_choice("decoder_only", options));
    const auto ids = random_ids({2, 11}, small_vocabulary, "ids");
    Batch batch;
    batch.target_BT = ids;
    Forward run;
    const auto whole = model->logits(batch, run);
    for (const int64_t chunk : {1, 2, 5}) {
      const auto stepper = model->stepper({}, run);
      for (int64_t t = 0; t < 11; t += chunk) {
        const auto length = std::min<int64_t>(chunk, 11 - t);
        CHECK(difference(stepper->step(ids.narrow(1, t, length), run), whole.select(1, t + length - 1)) < 1e-12);
      }
    }
  }
}

TEST_CASE("a gate is drawn once for all segments, and its penalty is counted once") {
  auto options = small_decoder_only();
  options.decoder.layers = 1;
  Choice gate(gate_catalogue, "hard_concrete");
  gate.as<HardConcreteOptions>().penalty = 1;
  gate.as<HardConcreteOptions>().initial = 0;
  options.decoder.attention.gates.items = {gate};
  Batch batch;
  batch.target_BT = random_ids({2, 9}, small_vocabulary, "ids");
  std::vector<Tensor> said;
  std::vector<double> penalty;
  for (const bool in_parts : {false, true}) {
    options.segments = in_parts ? segments(4, 100) : SegmentOptions{};
    const auto model = make_model(model_choice("decoder_only", options));
    model->train();
    Forward run;
    run.noise_seed = 5;
    said.push_back(model->logits(batch, run).detach());
    double sum = 0, count = 0;
    for (const auto& aux : run.aux) sum += aux.sum.item<double>(), count += aux.count.item<double>();
    penalty.push_back(sum / count);
  }
  CHECK(difference(said[0], said[1]) < 1e-5);
  CHECK(penalty[0] == Approx(penalty[1]));
}

TEST_CASE("segments are paid for by what they see") {
  auto options = small_decoder_only();
  const auto whole = make_model(model_choice("decoder_only", options));
  options.segments = segments(4, 4);
  const auto parts = make_model(model_choice("decoder_only", options));
  // Each layer: query, key, value and output products of D x D, and scores and values of the pairs.
  const auto products = [](int64_t queries, int64_t keys) {
    return 2 * small_width * small_width * (2 * queries + 2 * keys);
  };
  const auto pairs = [](int64_t count) { return 4 * count * small_width; };
  const int64_t T = 12;
  // Pairs: 4 + 3 + 2 + 1 in the first segment; each later one sees four more for each of its four queries.
  const auto expected = products(4, 4) + 2 * products(4, 8) + pairs(10 + 2 * (10 + 16));
  const auto full = products(12, 12) + pairs(12 * 13 / 2);
  CHECK(whole->flops(0, T) - parts->flops(0, T) == 2 * (full - expected));
}
