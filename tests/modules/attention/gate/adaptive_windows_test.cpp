// 2608.19203, adaptive windows: features, decisions and gradients against loops and closed forms.
#include "modules/attention/gate/adaptive_windows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "modules/attention/project/standard.h"
#include "modules/model/updates.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

constexpr int64_t D = 8, T = 12, B = 3;
using Numbers = std::vector<int64_t>;

Choice adaptive(const std::function<void(AdaptiveWindowsOptions&)>& change = {}) {
  Choice gate(gate_catalogue, "adaptive_windows");
  auto& options = gate.as<AdaptiveWindowsOptions>();
  options.set = {2, 4, 8, 16};
  options.interval = 1;
  options.warmup = 0;
  if (change) change(options);
  return gate;
}

std::shared_ptr<Attention> attention_with(const Choice& gate, int64_t groups = 4) {
  auto options = small_attention();
  options.project = Choice(project_catalogue, "grouped");
  options.project.as<GroupedProjectOptions>().groups = groups;
  options.gates.items = {gate};
  return make_attention(options, D);
}

AdaptiveWindows& gate_of(Attention& attention) { return dynamic_cast<AdaptiveWindows&>(*attention.gate_list()[0]); }
Tensor buffer(const Attention& attention, const std::string& name) {
  return attention.named_buffers()["gate0." + name];
}

/// One training pass; what it left, and what a tap saw of it.
struct Passed {
  std::map<std::string, Tensor> stats;
  std::map<At, Tensor> saw;
  Tensor y;
};

Passed passed(Attention& attention, const Tensor& x, const Tensor& mask = {}, bool looks = false) {
  attention.train();
  Passed made;
  LambdaTap tap([&](At, Site) { return looks; }, [&](At at, Site, Tensor value) { return made.saw[at] = value; });
  Forward run;
  run.taps = {&tap};
  auto see = causal();
  see.query_mask_BT = mask;
  made.y = attention.forward(call_of(x, run, see));
  CHECK(run.taps.size() == 1);  // the gate's own tap is gone
  made.stats = run.stats;
  return made;
}

void update(Attention& attention, const std::map<std::string, Tensor>& stats) {
  torch::NoGradGuard no_grad;
  gate_of(attention).update({Stack::dec_self, 0}, stats);
}

/// The nine features by loops, from what a tap saw.
std::vector<std::vector<double>> features_by_loops(const std::map<At, Tensor>& saw, const Numbers& group_of,
                                                   const Tensor& mask, const Numbers& windows, double largest) {
  const auto number = [](const Tensor& x, int64_t b, int64_t h, int64_t t, int64_t i) {
    return x.accessor<double, 4>()[b][h][t][i];
  };
  std::vector<std::vector<double>> all;
  for (int64_t h = 0; h < 4; ++h) {
    std::vector<double> of_head;
    for (const auto at : {At::q, At::k, At::v}) {
      const auto x = saw.at(at).detach();
      const auto place = at == At::q ? h : group_of[h];
      double sum = 0, absolute = 0, count = 0, spread = 0;
      for (const bool second : {false, true})
        for (int64_t b = 0; b < B; ++b)
          for (int64_t t = 0; t < T; ++t)
            for (int64_t i = 0; i < x.size(3) && mask[b][t].item<bool>(); ++i) {
              const auto value = number(x, b, place, t, i);
              if (second) {
                spread += (value - sum / count) * (value - sum / count);
              } else {
                sum += value;
                absolute += std::abs(value);
                count += 1;
              }
            }
      of_head.push_back(absolute / count);
      of_head.push_back(std::sqrt(spread / count));
    }
    double entropy = 0, rows = 0, norm = 0, tokens = 0;
    const auto w = saw.at(At::weights).detach(), z = saw.at(At::z).detach();
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t) {
        if (!mask[b][t].item<bool>()) continue;
        double square = 0, row = 0;
        for (int64_t i = 0; i < z.size(3); ++i) square += number(z, b, h, t, i) * number(z, b, h, t, i);
        norm += std::sqrt(square);
        tokens += 1;
        const auto sees = windows[h] == 0 ? t + 1 : std::min(t + 1, windows[h]);
        if (sees < 2) continue;
        for (int64_t s = t + 1 - sees; s <= t; ++s) row -= number(w, b, h, t, s) * std::log(number(w, b, h, t, s));
        entropy += row / std::log(static_cast<double>(sees));
        rows += 1;
      }
    of_head.push_back(entropy / rows);
    of_head.push_back(norm / tokens);
    of_head.push_back(windows[h] == 0 ? 1 : static_cast<double>(windows[h]) / largest);
    all.push_back(of_head);
  }
  return all;
}

void check_features(const Tensor& feature_HF, const std::vector<std::vector<double>>& expected) {
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t f = 0; f < AdaptiveWindows::features; ++f) {
      INFO("head " << h << ", feature " << f);
      CHECK(feature_HF[h][f].item<double>() == Catch::Detail::Approx(expected[h][f]).epsilon(1e-10));
    }
}

/// What the controller chooses for these features, written out.
int64_t choice_by_loops(const Attention& attention, const HeadFeatures& features) {
  const auto tensors = [&](const std::string& name) {
    const auto* found = attention.named_buffers().find("gate0." + name);
    return (found ? *found : attention.named_parameters()["gate0." + name]).detach().to(torch::kFloat64);
  };
  const auto a = tensors("hidden_weight"), b = tensors("hidden_bias"), c = tensors("choice_weight"),
             d = tensors("choice_bias");
  int64_t best = 0;
  double most = 0;
  for (int64_t choice = 0; choice < c.size(0); ++choice) {
    double logit = d[choice].item<double>();
    for (int64_t i = 0; i < a.size(0); ++i) {
      double u = b[i].item<double>();
      for (int64_t f = 0; f < a.size(1); ++f) u += a[i][f].item<double>() * features[f];
      logit += c[choice][i].item<double>() * u * 0.5 * (1 + std::erf(u / std::sqrt(2.0)));
    }
    if (choice == 0 || logit > most) {
      best = choice;
      most = logit;
    }
  }
  return best;
}

std::vector<HeadFeatures> rows_of(const Tensor& feature_HF) {
  std::vector<HeadFeatures> rows;
  for (int64_t h = 0; h < feature_HF.size(0); ++h)
    rows.emplace_back(feature_HF[h].data_ptr<double>(), feature_HF[h].data_ptr<double>() + feature_HF.size(1));
  return rows;
}

/// The gradients of the gate's parameters are those of `surrogate` by differences, for every `step`-th number, and not
/// all near 0.
void check_gradients(const Attention& attention, const std::vector<std::string>& names, int64_t step,
                     const std::function<double()>& surrogate) {
  double largest = 0;
  for (const auto& name : names) {
    auto parameter = attention.named_parameters()["gate0." + name];
    auto values = parameter.view(-1);
    const auto gradient = parameter.grad().view(-1);
    for (int64_t i = 0; i < values.numel(); i += step) {
      const auto at = values[i].item<double>();
      values[i] = at + 1e-5;
      const auto up = surrogate();
      values[i] = at - 1e-5;
      const auto down = surrogate();
      values[i] = at;
      INFO(name << " " << i);
      CHECK(std::abs((up - down) / 2e-5 - gradient[i].item<double>()) < 1e-6);
      largest = std::max(largest, std::abs(gradient[i].item<double>()));
    }
  }
  CHECK(largest > 1e-4);
}

}  // namespace

TEST_CASE(
    "features of heads are those of loops over real tokens, over groups and windows, and then their moving average") {
  DefaultDtype guard(torch::kFloat64);
  const auto mask = mask_of({T, T - 4, 5}, T);
  for (const int64_t groups : {4, 2}) {
    const auto attention = attention_with(adaptive([](auto& o) { o.ema = 0.75; }), groups);
    const Numbers group_of = groups == 4 ? Numbers{0, 1, 2, 3} : Numbers{0, 0, 1, 1};
    const auto first = passed(*attention, noise({B, T, D}, "first"), mask, true);
    update(*attention, first.stats);
    const auto one = features_by_loops(first.saw, group_of, mask, {0, 0, 0, 0}, 16);
    check_features(buffer(*attention, "feature"), one);
    buffer(*attention, "window").copy_(torch::tensor({2, 4, 16, 8}, torch::kLong));
    const auto second = passed(*attention, noise({B, T, D}, "second"), mask, true);
    update(*attention, second.stats);
    auto both = features_by_loops(second.saw, group_of, mask, {2, 4, 16, 8}, 16);
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t f = 0; f < AdaptiveWindows::features; ++f) both[h][f] = 0.75 * one[h][f] + 0.25 * both[h][f];
    check_features(buffer(*attention, "feature"), both);
    CHECK(buffer(*attention, "steps")[0].item<int64_t>() == 2);
    CHECK(buffer(*attention, "steps")[1].item<int64_t>() == 2);
  }
}

TEST_CASE("the sums of two batches give the features of one batch of both") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), mask = mask_of({T, T - 4, 5}, T);
  const auto whole = attention_with(adaptive()), parts = attention_with(adaptive());
  update(*whole, passed(*whole, x, mask).stats);
  std::map<std::string, Tensor> sums;
  add_stats(sums, passed(*parts, x.narrow(0, 0, 1), mask.narrow(0, 0, 1)).stats);
  add_stats(sums, passed(*parts, x.narrow(0, 1, 2), mask.narrow(0, 1, 2)).stats);
  update(*parts, sums);
  CHECK(difference(buffer(*parts, "feature"), buffer(*whole, "feature")) < 1e-12);
  CHECK(torch::equal(buffer(*parts, "window"), buffer(*whole, "window")));
}

TEST_CASE("windows are those of the controller written out, for groups of heads, clamped from the top") {
  DefaultDtype guard(torch::kFloat64);
  const auto attention = attention_with(adaptive());
  std::set<Numbers> decisions;
  std::vector<int64_t> former(4, -1);
  for (int64_t step = 0; step < 40; ++step) {
    {
      torch::NoGradGuard no_grad;  // another controller each time
      for (const auto* name : {"hidden_weight", "hidden_bias", "choice_weight", "choice_bias"}) {
        auto weights = buffer(*attention, name);
        weights.copy_(noise(weights.sizes(), name + std::to_string(step)));
      }
    }
    update(*attention, passed(*attention, noise({B, T, D}, "x" + std::to_string(step))).stats);
    const auto levels = group_heads(rows_of(buffer(*attention, "feature")), former, {});
    std::vector<Numbers> chosen;
    for (const auto& level : levels) {
      chosen.emplace_back();
      for (const auto& mean : level.means) chosen.back().push_back(choice_by_loops(*attention, mean));
    }
    Numbers expected;
    for (auto choice : clamped_choices(levels, chosen)) expected.push_back(Numbers{2, 4, 8, 16}[choice]);
    CHECK(gate_of(*attention).windows() == expected);
    for (int64_t h = 0; h < 4; ++h) CHECK(buffer(*attention, "group")[h].item<int64_t>() == levels[0].group_of[h]);
    former = levels[0].group_of;
    decisions.insert(expected);
  }
  CHECK(decisions.size() > 3);
}

TEST_CASE("siblings that choose as pairs take the two windows whose score together is the highest") {
  DefaultDtype guard(torch::kFloat64);
  const auto attention = attention_with(adaptive([](auto& o) { o.siblings = "pairs"; }));
  const Numbers set{2, 4, 8, 16};
  int64_t pairs_seen = 0, differ = 0;
  std::vector<int64_t> former(4, -1);
  for (int64_t step = 0; step < 40; ++step) {
    {
      torch::NoGradGuard no_grad;
      for (const std::string name : {"hidden_weight", "hidden_bias", "choice_weight", "choice_bias"})
        for (const std::string joint : {"", "joint_"}) {
          auto weights = buffer(*attention, joint + name);
          weights.copy_(noise(weights.sizes(), joint + name + std::to_string(step)));
        }
    }
    update(*attention, passed(*attention, noise({B, T, D}, "x" + std::to_string(step))).stats);
    const auto levels = group_heads(rows_of(buffer(*attention, "feature")), former, {});
    std::vector<Numbers> chosen;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      chosen.emplace_back();
      for (const auto& mean : levels[l].means) chosen.back().push_back(choice_by_loops(*attention, mean));
      for (const auto& [first, second] : sibling_pairs(levels, l)) {
        auto both = levels[l].means[first];
        both.insert(both.end(), levels[l].means[second].begin(), levels[l].means[second].end());
        double most = 0;
        const auto alone = Numbers{chosen.back()[first], chosen.back()[second]};
        for (int64_t i = 0; i < 4; ++i)
          for (int64_t j = 0; j < 4; ++j) {
            double score = buffer(*attention, "joint_choice_bias")[4 * i + j].item<double>();
            for (int64_t n = 0; n < AdaptiveWindows::joint_hidden; ++n) {
              double h = buffer(*attention, "joint_hidden_bias")[n].item<double>();
              for (std::size_t f = 0; f < both.size(); ++f)
                h += buffer(*attention, "joint_hidden_weight")[n][static_cast<int64_t>(f)].item<double>() * both[f];
              score += buffer(*attention, "joint_choice_weight")[4 * i + j][n].item<double>() * h * 0.5 *
                       (1 + std::erf(h / std::sqrt(2.0)));
            }
            if ((i == 0 && j == 0) || score > most) {
              most = score;
              chosen.back()[first] = i;
              chosen.back()[second] = j;
            }
          }
        ++pairs_seen;
        differ += Numbers{chosen.back()[first], chosen.back()[second]} != alone;
      }
    }
    Numbers expected;
    for (auto choice : clamped_choices(levels, chosen)) expected.push_back(set[choice]);
    CHECK(gate_of(*attention).windows() == expected);
    former = levels[0].group_of;
  }
  CHECK(pairs_seen >= 40);
  CHECK(differ > 10);
}

TEST_CASE("an average of choices moves a head's window by the share of the new, and takes the nearest") {
  DefaultDtype guard(torch::kFloat64);
  const auto attention = attention_with(adaptive([](auto& o) { o.index_ema = 0.25; }));
  const auto all_take = [&](int64_t choice) {
    torch::NoGradGuard no_grad;
    buffer(*attention, "choice_weight").zero_();
    buffer(*attention, "choice_bias").zero_()[choice] = 1;
    update(*attention, passed(*attention, noise({B, T, D}, "x")).stats);
    return gate_of(*attention).windows().front();
  };
  CHECK(all_take(3) == 16);  // the first as it is: 3
  CHECK(all_take(0) == 8);   // 2.25
  CHECK(all_take(0) == 8);   // 1.6875
  CHECK(all_take(0) == 4);   // 1.265625
  CHECK(all_take(0) == 4);   // 0.94921875
  CHECK(buffer(*attention, "index")[0].item<double>() == Approx(0.94921875).margin(1e-12));
  CHECK(all_take(3) == 4);  // 1.4619140625
  attention->keep({2, 3});
  CHECK(buffer(*attention, "index").size(0) == 2);
}

TEST_CASE("a controller of pairs learns by the probability of a head's own window, whatever its sibling takes") {
  DefaultDtype guard(torch::kFloat64);
  const auto attention = attention_with(adaptive([](auto& o) {
    o.siblings = "pairs";
    o.controller_grad = "ste";
  }));
  auto parameters = attention->named_parameters();
  const std::vector<std::string> names{"joint_hidden_weight", "joint_hidden_bias", "joint_choice_weight",
                                       "joint_choice_bias"};
  {
    torch::NoGradGuard no_grad;
    for (const auto& name : names)
      parameters["gate0." + name].copy_(noise(parameters["gate0." + name].sizes(), name) * 0.3);
  }
  const auto x = noise({B, T, D}, "x"), weight = noise({B, T, D}, "loss");
  update(*attention, passed(*attention, x).stats);
  const auto sibling = buffer(*attention, "sibling"), groups = buffer(*attention, "group"),
             feature = buffer(*attention, "feature");
  REQUIRE(sibling.ne(-1).all().item<bool>());  // two groups, of one parent
  Tensor z;
  LambdaTap tap([](At at, Site) { return at == At::z; },
                [&](At, Site, Tensor value) {
                  value.retain_grad();
                  return z = value;
                });
  Forward run;
  run.taps = {&tap};
  (attention->forward(call_of(x, run, causal())) * weight).sum().backward();
  const auto by_head = (z * z.grad()).detach().sum(at::IntArrayRef{0, 2, 3});
  const Numbers set{2, 4, 8, 16};
  torch::NoGradGuard no_grad;
  const auto mean = [&](int64_t group) { return feature.index({groups.eq(group)}).mean(0, true); };
  const auto surrogate = [&] {
    const auto p = gate_of(*attention).pair_controller(mean(0), mean(1)).flatten().softmax(0).view({4, 4});
    double sum = 0;
    for (int64_t h = 0; h < 4; ++h) {
      const auto place = std::find(set.begin(), set.end(), gate_of(*attention).windows()[h]) - set.begin();
      const auto own = groups[h].item<int64_t>() == 0 ? p[place].sum() : p.select(1, place).sum();
      sum += by_head[h].item<double>() * own.item<double>();
    }
    return sum;
  };
  check_gradients(*attention, names, 17, surrogate);
}

TEST_CASE("through the warm-up heads see all, and a decision comes each interval after it") {
  const auto attention = attention_with(adaptive([](auto& o) {
    o.interval = 3;
    o.warmup = 7;
    o.set = {1, 2};
  }));
  const auto plain = make_attention(
      [] {
        auto options = small_attention();
        options.project = Choice(project_catalogue, "grouped");
        options.project.as<GroupedProjectOptions>().groups = 4;
        return options;
      }(),
      D);
  plain->train();
  const auto x = noise({B, T, D}, "x");
  for (int64_t step = 1; step <= 12; ++step) {
    INFO("step " << step);
    CHECK(gate_of(*attention).measures_now() == (step % 3 == 0));
    const auto pass = passed(*attention, x);
    CHECK(pass.stats.empty() == (step % 3 != 0));
    Forward run;
    const auto full = plain->forward(call_of(x, run, causal()));
    if (step < 9 && step % 3 != 0) CHECK(torch::equal(pass.y, full));
    if (step < 9) CHECK(difference(pass.y, full) < 1e-6);
    if (step > 9) CHECK(difference(pass.y, full) > 1e-3);
    update(*attention, pass.stats);
    // Step 9 is the first of every third that has 7 behind it.
    CHECK((gate_of(*attention).windows() == Numbers{0, 0, 0, 0}) == (step < 9));
  }
  CHECK(buffer(*attention, "steps")[0].item<int64_t>() == 12);
  CHECK(buffer(*attention, "steps")[1].item<int64_t>() == 4);
}

TEST_CASE(
    "a pass leaves a gate that adapts as it is, measures in training alone, and leaves the fused kernel to measure "
    "alone") {
  const auto attention = attention_with(adaptive([](auto& o) { o.interval = 2; }));
  const auto before = attention->named_buffers();
  std::map<std::string, Tensor> copies;
  for (const auto& item : before) copies[item.key()] = item.value().clone();
  const auto x = noise({B, T, D}, "x");
  const auto explicit_softmax = [&] {
    const auto ran = operators_of([&] { passed(*attention, x); });
    return ran.count("aten::_softmax") && ran.at("aten::_softmax") > 0;
  };
  CHECK(!explicit_softmax());
  update(*attention, {});
  CHECK(explicit_softmax());
  copies["gate0.steps"][0] += 1;
  for (const auto& item : attention->named_buffers()) {
    INFO(item.key());
    CHECK(torch::equal(item.value(), copies.at(item.key())));
  }
  attention->eval();
  Forward run;
  attention->forward(call_of(x, run, causal()));
  CHECK(run.stats.empty());
}

TEST_CASE("a straight-through controller changes no bit of the pass, and has the gradient of its probability") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), weight = noise({B, T, D}, "loss");
  const auto with = [&](const std::string& grad) {
    const auto attention = attention_with(adaptive([&](auto& o) { o.controller_grad = grad; }));
    torch::NoGradGuard no_grad;
    for (const auto* name : {"hidden_weight", "hidden_bias", "choice_weight", "choice_bias"}) {
      auto list = grad == "ste" ? attention->named_parameters() : attention->named_buffers();
      auto weights = list["gate0." + std::string(name)];
      weights.copy_(noise(weights.sizes(), name));
    }
    return attention;
  };
  const auto none = with("none"), ste = with("ste");
  CHECK(none->named_parameters().size() + 4 == ste->named_parameters().size());
  // Before a decision no probability is in force: the gradient is there, and 0.
  (passed(*ste, x).y * weight).sum().backward();
  CHECK(ste->named_parameters()["gate0.choice_bias"].grad().abs().max().item<double>() == 0);
  for (auto* attention : {none.get(), ste.get()}) update(*attention, passed(*attention, x).stats);
  REQUIRE(gate_of(*ste).windows() != Numbers{0, 0, 0, 0});
  CHECK(gate_of(*ste).windows() == gate_of(*none).windows());
  const auto pass = passed(*ste, x, {}, true);
  CHECK(torch::equal(pass.y, passed(*none, x, {}, true).y));

  ste->zero_grad();
  Tensor z;
  LambdaTap tap([](At at, Site) { return at == At::z; },
                [&](At, Site, Tensor value) {
                  value.retain_grad();
                  return z = value;
                });
  Forward run;
  run.taps = {&tap};
  (ste->forward(call_of(x, run, causal())) * weight).sum().backward();
  const auto by_head = (z * z.grad()).detach().sum(at::IntArrayRef{0, 2, 3});
  // d loss / d theta = sum_h (z_h . dL/dz_h) d p_h / d theta, with p_h by differences.
  const auto groups = buffer(*ste, "group"), feature = buffer(*ste, "feature");
  const Numbers set{2, 4, 8, 16};
  const auto surrogate = [&] {
    double sum = 0;
    for (int64_t h = 0; h < 4; ++h) {
      HeadFeatures mean(AdaptiveWindows::features, 0);
      double members = 0;
      for (int64_t other = 0; other < 4; ++other)
        if (groups[other].item<int64_t>() == groups[h].item<int64_t>()) {
          for (std::size_t f = 0; f < mean.size(); ++f)
            mean[f] += feature[other][static_cast<int64_t>(f)].item<double>();
          members += 1;
        }
      for (auto& number : mean) number /= members;
      const auto p = gate_of(*ste).controller(torch::tensor(mean, torch::kFloat64).unsqueeze(0)).softmax(-1)[0];
      const auto window = gate_of(*ste).windows()[h];
      sum += by_head[h].item<double>() * p[std::find(set.begin(), set.end(), window) - set.begin()].item<double>();
    }
    return sum;
  };
  torch::NoGradGuard no_grad;
  check_gradients(*ste, {"hidden_weight", "hidden_bias", "choice_weight", "choice_bias"}, 5, surrogate);
}

TEST_CASE("a kept head keeps its window, features and group, and the masked model equals the removed one") {
  DefaultDtype guard(torch::kFloat64);
  auto self = small_attention();
  self.gates.items = {adaptive()};
  const auto model = make_model(model_choice("decoder_only", small_decoder_only(self)));
  const std::vector<Numbers> windows{{4, 16, 2, 8}, {2, 2, 4, 16}};
  for (int64_t layer = 0; layer < 2; ++layer) {
    auto buffers = model->named_buffers();
    const auto name = "decoder.layers." + std::to_string(layer) + ".self_attention.gate0.";
    buffers[name + "window"].copy_(torch::tensor(windows[layer], torch::kLong));
    buffers[name + "feature"].copy_(torch::arange(36).view({4, 9}));
    buffers[name + "group"].copy_(torch::tensor({0, 1, 1, 0}, torch::kLong));
  }
  const auto batch = small_batch();
  auto scale = model->ones();
  scale[Stack::dec_self][0][1] = 0;
  scale[Stack::dec_self][1][0] = 0;
  scale[Stack::dec_self][1][3] = 0;
  Forward run;
  run.scale = scale;
  const auto masked = model->logits(batch, run);
  model->keep({{Stack::dec_self, {{0, 2, 3}, {1, 2}}}});
  CHECK(difference(logits_of(*model, batch), masked) < 1e-12);
  const auto kept = model->named_buffers();
  CHECK(torch::equal(kept["decoder.layers.0.self_attention.gate0.window"], torch::tensor({4, 2, 8}, torch::kLong)));
  CHECK(torch::equal(kept["decoder.layers.1.self_attention.gate0.group"], torch::tensor({1, 1}, torch::kLong)));
  CHECK(kept["decoder.layers.1.self_attention.gate0.feature"][0][0].item<double>() == 9);
  // And it goes on adapting with what is left.
  model->train();
  Forward training;
  model->logits(batch, training);
  update_modules(*model, training.stats);
  CHECK(model->named_buffers()["decoder.layers.1.self_attention.gate0.steps"][1].item<int64_t>() == 1);
}

}  // namespace headlab
