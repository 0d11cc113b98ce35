#include "src/heads/score/magnitude_profile.h"

#include <algorithm>
#include <cmath>

#include "modules/attention/project/standard.h"
#include "modules/base/random.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

HeadScores profile(Model& model, double threshold = 2) {
  MagnitudeProfileOptions options;
  options.threshold = threshold;
  return MagnitudeProfile(options).score(model, ToyTask({3}), 0);
}

HeadScores norms(Model& model) { return NormScorer(NoOptions()).score(model, ToyTask({3}), 0); }

/// A decoder of one layer of 16 heads, of width 16 each, with `groups` key/value groups; weights are normal numbers.
std::shared_ptr<DecoderOnly> one_layer(int64_t groups, uint64_t seed) {
  DecoderOnlyOptions options;
  options.d_model = 256;
  options.decoder.layers = 1;
  options.decoder.attention.heads = 16;
  if (groups < 16) {
    options.decoder.attention.project.choose("grouped");
    options.decoder.attention.project.as<GroupedProjectOptions>().groups = groups;
  }
  ModelContext context;
  context.target_vocabulary = 10;
  auto model = std::make_shared<DecoderOnly>(options, context);
  const torch::NoGradGuard no_grad;
  for (auto& item : model->named_parameters())
    if (item.value().dim() == 2) item.value().normal_(0, 1, named_generator(seed, item.key()));
  return model;
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const auto n = numbers.size();
  return n % 2 == 1 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

/// The part of one projection, by loops: rows[h] are the norms of unit h.
std::vector<double> part(const std::vector<std::vector<double>>& rows, double threshold) {
  std::vector<double> all;
  for (const auto& of_unit : rows) all.insert(all.end(), of_unit.begin(), of_unit.end());
  const auto middle = median(all);
  std::vector<double> away;
  for (const auto r : all) away.push_back(std::abs(r - middle));
  const auto deviation = 1.4826 * median(away);
  std::vector<double> parts;
  for (const auto& of_unit : rows) {
    double sum = 0;
    for (const auto r : of_unit) sum += std::max((r - middle) / deviation - threshold, 0.0);
    parts.push_back(sum / static_cast<double>(of_unit.size()));
  }
  return parts;
}

/// Norms of the rows [from, from + units * width) of a matrix, or of its columns, by unit.
std::vector<std::vector<double>> rows_of(const Tensor& matrix, int64_t from, int64_t units, int64_t width,
                                         bool columns = false) {
  const auto m = (columns ? matrix.t() : matrix).detach().to(torch::kFloat64).contiguous();
  std::vector<std::vector<double>> rows(static_cast<std::size_t>(units));
  for (int64_t u = 0; u < units; ++u)
    for (int64_t i = 0; i < width; ++i) {
      double square = 0;
      for (int64_t j = 0; j < m.size(1); ++j) square += std::pow(m[from + u * width + i][j].item<double>(), 2);
      rows[static_cast<std::size_t>(u)].push_back(std::sqrt(square));
    }
  return rows;
}

}  // namespace

TEST_CASE("the magnitude profile is the excess of its formula, by loops; shared rows count by equal shares",
          "[heads][paper-44]") {
  for (const int64_t groups : {16, 4}) {
    CAPTURE(groups);
    auto model = one_layer(groups, 2);
    const auto parameters = model->named_parameters();
    const auto name = [&](const std::string& end) {
      for (const auto& item : parameters)
        if (item.key().size() > end.size() &&
            item.key().compare(item.key().size() - end.size(), end.size(), end) == 0 &&
            item.key().find("attention") != std::string::npos)
          return item.value();
      throw std::logic_error("no " + end);
    };
    const auto all = name("project.weight"), out = name("mix.weight");
    const auto q = part(rows_of(all, 0, 16, 16), 1), k = part(rows_of(all, 256, groups, 16), 1),
               v = part(rows_of(all, 256 + groups * 16, groups, 16), 1), o = part(rows_of(out, 0, 16, 16, true), 1);
    const auto scores = profile(*model, 1);
    REQUIRE(scores.heads.size() == 16);
    const auto readers = 16 / groups;
    double sum = 0;
    for (std::size_t h = 0; h < 16; ++h) {
      const auto g = h / static_cast<std::size_t>(readers);
      const auto expected = q[h] + (k[g] + v[g]) / static_cast<double>(readers) + o[h];
      CHECK(scores.heads.at({Stack::dec_self, 0, static_cast<int64_t>(h)}) ==
            Catch::Detail::Approx(expected).margin(2e-9));
      sum += expected;
    }
    CHECK(sum > 0.1);  // something stands out
  }
}

TEST_CASE("heads with planted rows that stand out come first, whatever the scale of the weights", "[heads][paper-44]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto model = one_layer(16, seed);
    Random random(seed);
    HeadSet planted;
    {
      const torch::NoGradGuard no_grad;
      for (const auto& [site, mixer] : model->mixers()) {
        auto parameters = mixer->named_parameters();
        for (const auto head : random.sample(16, 4)) {
          planted.push_back({site.stack, site.layer, head});
          for (const auto row : random.sample(16, 3)) parameters["project.weight"][head * 16 + row].mul_(1.5);
        }
      }
    }
    SelectOptions select;
    select.count = 4;
    select.highest = true;
    const auto scores = profile(*model);
    CHECK(names_of(select_heads(model->heads(), scores, select)) == names_of(sorted_set(planted)));
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.mul_(8);
    for (const auto& [head, score] : profile(*model).heads)
      CHECK(score == Catch::Detail::Approx(scores.heads.at(head)).epsilon(1e-5).margin(1e-12));
  }
}

TEST_CASE(
    "of heads without a row that stands out the one with the smaller output comes first, and equal rows divide by "
    "nothing",
    "[heads][paper-44]") {
  auto model = one_layer(16, 3);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.fill_(0.5);
  for (const auto& [site, mixer] : model->mixers())
    mixer->named_parameters()["mix.weight"].narrow(1, 5 * 16, 16).fill_(0.25);
  const auto scores = profile(*model, 1e9);
  const auto least = std::min_element(scores.heads.begin(), scores.heads.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  CHECK(to_string(least->first) == "dec.self.0.5");
  for (const auto& [head, score] : scores.heads) CHECK((score > 0 && score < 1e-8));
}

TEST_CASE("the norm of a head is that of its parts of the matrices", "[heads][paper-44]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({3});
  auto model = toy_model(task);
  const auto scores = norms(*model);
  CHECK(scores.heads.size() == 24);
  for (const auto& [site, mixer] : model->mixers()) {
    if (site.stack != Stack::enc_self) continue;
    const auto parameters = mixer->named_parameters();
    const auto weight = parameters["project.weight"], out = parameters["mix.weight"];
    for (int64_t h = 0; h < 4; ++h) {
      double expected = out.narrow(1, h * 4, 4).norm().item<double>();
      for (int64_t m = 0; m < 3; ++m) expected += weight.narrow(0, m * 16 + h * 4, 4).norm().item<double>();
      CHECK(scores.heads.at({site.stack, site.layer, h}) == Catch::Detail::Approx(expected));
    }
  }
  model->keep(without(model->heads(), parse_heads({"enc.self.0.0", "dec.cross.0.0", "dec.cross.0.1", "dec.cross.0.2",
                                                   "dec.cross.0.3"})));
  const auto left = norms(*model);
  CHECK(left.heads.size() == 19);
  CHECK(left.heads.at({Stack::enc_self, 0, 1}) == Catch::Detail::Approx(scores.heads.at({Stack::enc_self, 0, 1})));
}

}  // namespace headlab
