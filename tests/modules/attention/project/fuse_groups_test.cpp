// 2406.06567: heads whose keys and values become one within groups.
#include "modules/attention/project/fuse_groups.h"

#include "modules/attention/attention.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 5, D = 16, H = 4, K = 4;

AttentionOptions fusing(std::vector<int64_t> k_map, std::vector<int64_t> v_map, const std::string& position = "rope") {
  AttentionOptions options;
  options.heads = H;
  options.position.choose(position);
  options.then.items.emplace_back(adapter_catalogue, "fuse_groups");
  auto& fuse = options.then.items[0].as<FuseGroupsOptions>();
  fuse.k_map = std::move(k_map);
  fuse.v_map = std::move(v_map);
  fuse.steps = 4;
  fuse.lr_lambda = 0.5;
  return options;
}

FuseGroups& fuse_of(Attention& attention) {
  for (const auto& module : attention.modules(false))
    if (auto* fuse = dynamic_cast<FuseGroups*>(module.get())) return *fuse;
  throw std::logic_error("no fuse_groups");
}

Tensor forward(Attention& attention, const Tensor& x) {
  torch::NoGradGuard no_grad;
  Forward run;
  return attention.forward(call_of(x, run, causal()));
}

/// F written out.
double loss_by_loops(const Tensor& mix, const std::vector<int64_t>& groups) {
  double sum = 0;
  int64_t pairs = 0;
  for (int64_t i = 0; i < H; ++i)
    for (int64_t j = i + 1; j < H; ++j) {
      if (groups[i] != groups[j]) continue;
      ++pairs;
      for (int64_t from = 0; from < H; ++from)
        if (groups[from] == groups[i]) sum += std::pow(mix[from][i].item<double>() - mix[from][j].item<double>(), 2);
    }
  return pairs ? sum / static_cast<double>(pairs) : 0;
}

}  // namespace

TEST_CASE("heads that fuse start as heads of their own") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  auto with = make_attention(fusing({0, 0, 1, 1}, {0, 1, 1, 1}), D);
  auto options = with->options();
  options.then.items.clear();
  auto without = make_attention(options, D);
  initialise(*with, 3);
  torch::NoGradGuard no_grad;
  for (auto& item : without->named_parameters()) item.value().copy_(with->named_parameters()[item.key()]);
  CHECK(difference(forward(*with, x), forward(*without, x)) < 1e-14);
}

TEST_CASE("a fusing head uses the matrix sum_j w_ij W_j of its group") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  const std::vector<int64_t> k_map{0, 1, 0, 1}, v_map{0, 1, 1, 1};
  auto with = make_attention(fusing(k_map, v_map), D);
  auto options = with->options();
  options.then.items.clear();
  auto without = make_attention(options, D);
  torch::NoGradGuard no_grad;
  const auto p = with->named_parameters();
  auto own = without->named_parameters();
  for (auto& item : own) item.value().copy_(p[item.key()]);
  for (const std::string what : {"weight", "bias"})
    for (int64_t i = 0; i < H; ++i)
      for (const bool values : {false, true}) {
        const auto& map = values ? v_map : k_map;
        const auto first = (values ? 2 : 1) * H * K;
        auto into = own["project." + what].narrow(0, first + i * K, K);
        into.zero_();
        for (int64_t j = 0; j < H; ++j)
          if (map[i] == map[j])
            into.add_(p["project." + what].narrow(0, first + j * K, K) *
                      p[values ? "then0.value_mix" : "then0.key_mix"][j][i]);
      }
  CHECK(difference(forward(*with, x), forward(*without, x)) < 1e-13);
}

TEST_CASE("identical heads of a group stay what they are under any mix whose rows sum to 1") {
  const auto x = noise({B, T, D}, "x");
  const std::vector<int64_t> k_map{0, 0, 0, 1}, v_map{0, 1, 1, 1};
  auto attention = make_attention(fusing(k_map, v_map), D);
  initialise(*attention, 3);
  torch::NoGradGuard no_grad;
  auto p = attention->named_parameters();
  for (const bool values : {false, true})
    for (int64_t i = 0; i < H; ++i) {
      const auto& map = values ? v_map : k_map;
      const auto first = std::find(map.begin(), map.end(), map[i]) - map.begin();
      const auto rows = (values ? 2 : 1) * H * K;
      p["project.weight"].narrow(0, rows + i * K, K).copy_(p["project.weight"].narrow(0, rows + first * K, K));
    }
  const auto before = forward(*attention, x);
  for (const std::string what : {"key", "value"}) {
    auto mix = p["then0." + what + "_mix"];
    mix.copy_(noise({H, H}, what));
    const auto same = attention->named_buffers()["then0." + what + "_same"];
    mix.add_(same * ((1 - (mix * same).sum(0, true)) / same.sum(0, true)));  // each head's weights now sum to 1
  }
  CHECK(difference(forward(*attention, x), before) < 1e-6);
}

TEST_CASE("the fusion loss is the mean over pairs of a group of |w_i - w_j|^2") {
  DefaultDtype guard(torch::kFloat64);
  for (const auto& groups : std::vector<std::vector<int64_t>>{{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 1, 1}, {0, 1, 2, 3}}) {
    const auto mix = noise({H, H}, "mix"), same = same_fusion_group(groups, H);
    CHECK(fusion_loss(mix, same).item<double>() == Approx(loss_by_loops(mix, groups)).margin(1e-14));
    const bool none = groups == std::vector<int64_t>{0, 1, 2, 3};
    CHECK(fusion_loss(torch::eye(H), same).item<double>() == Approx(none ? 0 : 2).margin(1e-14));
    CHECK(fusion_loss(noise({H, 1}, "row").expand({H, H}), same).item<double>() < 1e-28);
  }
}

TEST_CASE("multipliers rise by what the loss is above a target that falls to 0 in a line") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(fusing({0, 0, 1, 1}, {0, 1, 2, 3}), D);
  initialise(*attention, 3);
  torch::NoGradGuard no_grad;
  auto& fuse = fuse_of(*attention);
  auto p = attention->named_parameters();
  const auto buffer = [&](const char* name) { return attention->named_buffers()[std::string("then0.") + name]; };
  CHECK(buffer("target")[0].item<double>() == Approx(2));
  double first = 0, second = 0;
  const double targets[] = {2, 1.5, 1, 0.5, 0, 0};
  for (int step = 0; step < 6; ++step) {
    p["then0.key_mix"].add_(noise({H, H}, "step" + std::to_string(step)), 0.1);
    const auto over = loss_by_loops(p["then0.key_mix"], {0, 0, 1, 1}) - targets[step];
    first += 0.5 * over;
    second += 0.5 * over * over;
    fuse.update({Stack::dec_self, 0}, {});
    CHECK(buffer("lambda")[0][0].item<double>() == Approx(first));
    CHECK(buffer("lambda")[0][1].item<double>() == Approx(second));
    CHECK(buffer("target")[0].item<double>() == Approx(targets[std::min(step + 1, 5)]).margin(1e-14));
    CHECK(buffer("lambda")[1].abs().max().item<double>() == 0);  // values of groups of one head have nothing to fuse
  }
  attention->train();
  Forward run;
  attention->forward(call_of(noise({B, T, D}, "x"), run, causal()));
  REQUIRE(run.aux.size() == 1);
  const auto F = loss_by_loops(p["then0.key_mix"], {0, 0, 1, 1});
  CHECK(run.aux[0].name == "fusion");
  CHECK(run.aux[0].sum.item<double>() == Approx(first * F + second * F * F));
  attention->eval();
  Forward quiet;
  attention->forward(call_of(noise({B, T, D}, "x"), quiet, causal()));
  CHECK(quiet.aux.empty());
}

TEST_CASE("the fusion loss drives the rows of groups together while training") {
  auto attention = make_attention(fusing({0, 0, 1, 1}, {0, 0, 0, 1}), D);
  initialise(*attention, 3);
  attention->train();
  auto& fuse = fuse_of(*attention);
  for (int step = 0; step < 60; ++step) {
    attention->zero_grad();
    Forward run;
    attention->forward(call_of(noise({B, T, D}, "x"), run, causal()));
    run.aux[0].sum.backward();
    torch::NoGradGuard no_grad;
    for (auto& item : attention->named_parameters())
      if (item.value().grad().defined()) item.value().sub_(item.value().grad(), 0.02);
    fuse.update({Stack::dec_self, 0}, {});
  }
  CHECK(fuse.left().first < 0.01);
  CHECK(fuse.left().second < 0.01);
}

TEST_CASE("fusion groups are counted by the projection's heads of keys and values") {
  auto options = fusing({0, 0}, {0, 1});
  options.project.choose("grouped");
  options.project.as<GroupedProjectOptions>().groups = 2;
  const auto problems_of = [&] {
    Problems problems;
    attention_rules(options, D, false, "attention", problems);
    return problems.found;
  };
  CHECK(problems_of().empty());
  CHECK(make_attention(options, D)->named_parameters()["then0.key_mix"].sizes() == at::IntArrayRef{2, 2});
  options.then.items[0].as<FuseGroupsOptions>().v_map = {0, 0, 1, 1};
  REQUIRE(problems_of().size() == 1);
  CHECK(problems_of()[0].field == "attention.then[0].v_map");
  CHECK_THROWS_AS(Attention(options, D, D, false), ShapeError);
}

}  // namespace headlab
