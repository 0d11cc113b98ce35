#include "modules/attention/gate/diversity.h"

#include <cmath>

#include "modules/attention/gate/windows.h"
#include "modules/attention/project/persistent.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

double of(const Likeness& found) { return (found.sum / found.count).item<double>(); }

/// D in loops over texts, tokens, pairs and numbers.
double by_loops(const std::string& form, const Tensor& u_BHTK, const Tensor& mask_BT) {
  const auto B = u_BHTK.size(0), H = u_BHTK.size(1), T = u_BHTK.size(2), K = u_BHTK.size(3);
  const auto u = u_BHTK.accessor<double, 4>();
  const auto real = mask_BT.accessor<bool, 2>();
  double sum = 0, count = 0;
  for (int64_t b = 0; b < B; ++b) {
    double tokens = 0;
    for (int64_t t = 0; t < T; ++t) tokens += real[b][t];
    if (form == "cross_correlation") {
      const auto mean = [&](int64_t h, int64_t k) {
        double total = 0;
        for (int64_t t = 0; t < T; ++t) total += real[b][t] ? u[b][h][t][k] : 0;
        return total / tokens;
      };
      const auto product = [&](int64_t h, int64_t g) {
        double total = 0;
        for (int64_t t = 0; t < T; ++t)
          for (int64_t k = 0; k < K; ++k)
            if (real[b][t]) total += (u[b][h][t][k] - mean(h, k)) * (u[b][g][t][k] - mean(g, k));
        return total;
      };
      double of_text = 0;
      for (int64_t h = 0; h < H; ++h)
        for (int64_t g = 0; g < H; ++g)
          if (h != g) of_text += std::pow(product(h, g), 2) / (product(h, h) * product(g, g));
      sum += of_text / static_cast<double>(H * (H - 1));
      count += 1;
      continue;
    }
    for (int64_t t = 0; t < T; ++t) {
      if (!real[b][t]) continue;
      for (int64_t h = 0; h < H; ++h)
        for (int64_t g = 0; g < H; ++g) {
          if (h == g) continue;
          double product = 0, one = 0, other = 0;
          for (int64_t k = 0; k < K; ++k) {
            product += u[b][h][t][k] * u[b][g][t][k];
            one += u[b][h][t][k] * u[b][h][t][k];
            other += u[b][g][t][k] * u[b][g][t][k];
          }
          const auto cosine = product / std::sqrt(one * other);
          sum += (form == "cosine" ? cosine : cosine * cosine) / static_cast<double>(H * (H - 1));
        }
      count += 1;
    }
  }
  return sum / count;
}

AttentionOptions apart(const std::string& on, const std::string& form = "cos2", double penalty = 0.3) {
  auto options = small_attention();
  options.gates.items.emplace_back(gate_catalogue, "diversity");
  auto& gate = options.gates.items.back().as<DiversityOptions>();
  gate.on = on;
  gate.form = form;
  gate.penalty = penalty;
  return options;
}

/// The one loss that a pass in training adds.
Aux loss_of(Attention& attention, const Tensor& x, const Tensor& mask, bool causal = true) {
  attention.train();
  Forward run;
  Visibility see;
  see.causal = causal;
  see.query_mask_BT = mask;
  attention.forward(call_of(x, run, see));
  REQUIRE(run.aux.size() == 1);
  CHECK(run.aux.front().name == "diversity");
  return run.aux.front();
}

/// What a tap sees at a place of a pass.
Tensor seen_at(Attention& attention, At place, const Tensor& x, const Tensor& mask) {
  attention.eval();
  Tensor seen;
  LambdaTap tap([&](At at, Site) { return at == place; }, [&](At, Site, Tensor value) { return seen = value; });
  Forward run;
  run.taps = {&tap};
  auto see = causal();
  see.query_mask_BT = mask;
  attention.forward(call_of(x, run, see));
  return seen.detach().contiguous();
}

}  // namespace

TEST_CASE("the likeness of heads is that of loops over pairs, tokens and texts, in every form", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  const auto u = noise({3, 4, 6, 5}, "u");
  const auto mask = mask_of({6, 4, 3}, 6);
  for (const auto& form : likeness_forms()) {
    INFO(form);
    CHECK(of(likeness(form, u, mask)) == Approx(by_loops(form, u, mask)).epsilon(1e-12));
    CHECK(of(likeness(form, u, {})) == Approx(by_loops(form, u, torch::ones_like(mask))).epsilon(1e-12));
    const auto found = likeness(form, u, mask, /*with_pairs=*/true);
    const auto off = found.pairs_HH.sum() - found.pairs_HH.diagonal().sum();
    CHECK(off.item<double>() / 12 == Approx(found.sum.item<double>()).epsilon(1e-12));
  }
}

TEST_CASE("identical heads have a likeness of 1, orthogonal ones of 0, whatever their lengths", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  const auto lengths = noise({1, 4, 1, 1}, "lengths").abs() + 0.1;
  const auto same = noise({2, 1, 6, 5}, "u").expand({2, 4, 6, 5}) * lengths;
  const auto apart = torch::eye(4).reshape({1, 4, 1, 4}) * noise({2, 1, 6, 1}, "time") * lengths;
  for (const auto& form : likeness_forms()) {
    INFO(form);
    CHECK(of(likeness(form, same, {})) == Approx(1).epsilon(1e-12));
    CHECK(std::abs(of(likeness(form, apart, {}))) < 1e-14);
  }
  // Opposite heads are alike by their squares alone.
  const auto opposite = torch::stack({same.select(1, 0), -same.select(1, 0)}, 1);
  CHECK(of(likeness("cosine", opposite, {})) == Approx(-1).epsilon(1e-12));
  CHECK(of(likeness("cos2", opposite, {})) == Approx(1).epsilon(1e-12));
}

TEST_CASE("heads in random directions have a likeness of 1/K", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  for (const int64_t K : {2, 8, 16}) {
    // Of 40,000 tokens with 6 independent pairs each; the square of a cosine has a deviation below 1/K sqrt(2).
    const auto found = of(likeness("cos2", noise({40, 4, 1000, K}, "K" + std::to_string(K)), {}));
    CHECK(found == Approx(1.0 / static_cast<double>(K)).epsilon(0.01));
    CHECK(std::abs(of(likeness("cosine", noise({40, 4, 1000, K}, "K" + std::to_string(K)), {}))) < 0.01);
  }
}

TEST_CASE("vectors of zeros, one head and one token give no loss that is not finite", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  for (const auto& form : likeness_forms()) {
    INFO(form);
    auto zeros = torch::zeros({2, 3, 1, 4}).requires_grad_();
    const auto found = likeness(form, zeros, {});
    CHECK(of(found) == 0);
    found.sum.backward();
    CHECK(finite(zeros.grad()));
    CHECK(!likeness(form, noise({2, 1, 3, 4}, "one"), {}).sum.defined());
  }
}

TEST_CASE("the loss is the penalty times the likeness of outputs, values or weights, padding left out", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({3, 6, small_width}, "x");
  const auto mask = mask_of({6, 4, 5}, 6);
  for (const auto& on : likeness_places())
    for (const auto& form : likeness_forms()) {
      INFO(on << ", " << form);
      const auto attention = make_attention(apart(on, form), small_width);
      const auto loss = loss_of(*attention, x, mask);
      const auto seen = seen_at(*attention, place_of_likeness(on), x, mask);
      CHECK((loss.sum / loss.count).item<double>() == Approx(0.3 * by_loops(form, seen, mask)).epsilon(1e-10));
    }
}

TEST_CASE("values are of groups, and vectors that persist are none of them", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  auto options = apart("values");
  options.project.choose("grouped");
  options.project.as<GroupedProjectOptions>().groups = 2;
  options.then.items.emplace_back(adapter_catalogue, "persistent");
  options.then.items.back().as<PersistentOptions>().vectors = 3;
  const auto attention = make_attention(options, small_width);
  const auto x = noise({3, 6, small_width}, "x");
  const auto mask = mask_of({6, 4, 5}, 6);
  const auto loss = loss_of(*attention, x, mask);
  const auto values = seen_at(*attention, At::v, x, mask);
  // Heads read groups after persistent vectors as one group each; the own tokens are the last six.
  CHECK(values.size(2) == 9);
  CHECK((loss.sum / loss.count).item<double>() ==
        Approx(0.3 * by_loops("cos2", values.slice(2, 3).contiguous(), mask)).epsilon(1e-10));
}

TEST_CASE("without a penalty, in evaluation and with one head there is no loss, and what heads give is never touched",
          "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  const auto plain = make_attention(small_attention(), small_width);
  for (const auto& on : likeness_places()) {
    INFO(on);
    const auto attention = make_attention(apart(on), small_width),
               free = make_attention(apart(on, "cos2", 0), small_width);
    for (auto* one : {attention.get(), free.get()})
      for (const bool training : {false, true}) {
        one->train(training);
        Forward run, other;
        const auto y = one->forward(call_of(x, run, causal()));
        CHECK(difference(y, plain->forward(call_of(x, other, causal()))) < 1e-12);
        CHECK(run.aux.size() == (training && one == attention.get() ? 1 : 0));
      }
    attention->keep({2});
    attention->train();
    Forward run;
    attention->forward(call_of(x, run, causal()));
    CHECK(run.aux.empty());
  }
}

TEST_CASE("a step against the loss makes heads differ more", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  const auto attention = make_attention(apart("output", "cos2", 1), small_width);
  const auto x = noise({4, 6, small_width}, "x");
  double last = 2;
  for (int step = 0; step < 5; ++step) {
    attention->zero_grad();
    const auto loss = loss_of(*attention, x, {});
    const auto mean = loss.sum / loss.count;
    CHECK(mean.item<double>() < last);
    last = mean.item<double>();
    mean.backward();
    torch::NoGradGuard no_grad;
    for (auto& parameter : attention->parameters())
      if (parameter.grad().defined()) parameter.add_(parameter.grad(), -0.5);
  }
}
