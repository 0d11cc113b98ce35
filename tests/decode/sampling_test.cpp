#include "src/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "modules/tensor/torch.h"
#include "src/decode/generate.h"
#include "src/decode/translate.h"
#include "tests/catch.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

std::vector<double> logs(const std::vector<double>& probabilities) {
  std::vector<double> all;
  for (const auto p : probabilities) all.push_back(p > 0 ? std::log(p) : never);
  return all;
}

std::vector<Likely> likely(const std::vector<double>& probabilities, double temperature, int64_t top_k, double top_p) {
  const auto log_p = logs(probabilities);
  return likely_tokens(log_p.data(), static_cast<int64_t>(log_p.size()), {temperature, top_k, top_p});
}

std::vector<int64_t> ids_of(const std::vector<Likely>& all) {
  std::vector<int64_t> ids;
  for (const auto& each : all) ids.push_back(each.id);
  return ids;
}

using Ids = std::vector<int64_t>;

/// The statistic of Pearson's test of counts against probabilities.
double chi_square(const std::vector<int64_t>& counts, const std::vector<double>& probabilities) {
  const auto n = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (probabilities[i] > 0)
      sum += std::pow(static_cast<double>(counts[i]) - n * probabilities[i], 2) / (n * probabilities[i]);
  return sum;
}

/// Next-token logits from a table by place alone; every row the same, so that what is drawn can be counted.
struct PlaceStepper : Stepper {
  explicit PlaceStepper(std::vector<std::vector<double>> table) : table(std::move(table)) {}
  Tensor step(const Tensor& ids_BT, Forward&) override {
    const auto row = torch::tensor(table.at(place), torch::kFloat64);
    place += 1;
    return row.unsqueeze(0).expand({ids_BT.size(0), -1});
  }
  void reorder(const Tensor&) override {}
  int64_t max_length() const override { return static_cast<int64_t>(table.size()); }
  std::vector<std::vector<double>> table;
  std::size_t place = 0;
};

SearchOptions sampling(double temperature = 1, int64_t top_k = 0, double top_p = 1, int64_t seed = 1) {
  SearchOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  options.seed = seed;
  return options;
}

const TextIds words{};

std::vector<Hypotheses> translated(Model& model, const std::vector<Ids>& sources, const SearchOptions& options,
                                   int64_t max_tokens = 1000, const Ids& prefix = {}) {
  Forward run;
  return translate_ids(model, sources, words, words, options, max_tokens, run, prefix);
}

}  // namespace

TEST_CASE("top-k keeps the k most probable tokens, the lower id of equals", "[decode]") {
  const std::vector<double> p{0.1, 0.3, 0.2, 0.3, 0.1};
  CHECK(ids_of(likely(p, 1, 1, 1)) == Ids{1});
  CHECK(ids_of(likely(p, 1, 2, 1)) == Ids{1, 3});
  CHECK(ids_of(likely(p, 1, 3, 1)) == Ids{1, 3, 2});
  CHECK(ids_of(likely(p, 1, 4, 1)) == Ids{1, 3, 2, 0});
  CHECK(ids_of(likely(p, 1, 0, 1)) == Ids{0, 1, 2, 3, 4});
  CHECK(ids_of(likely(p, 1, 9, 1)) == Ids{0, 1, 2, 3, 4});
  const auto three = likely(p, 1, 3, 1);
  CHECK(three[0].probability == Approx(0.3 / 0.8));
  CHECK(three[2].probability == Approx(0.2 / 0.8));
}

TEST_CASE("top-p keeps the fewest tokens that reach p, the one that passes it included", "[decode]") {
  const std::vector<double> p{0.125, 0.5, 0.25, 0.125};  // binary fractions: sums are exact
  CHECK(ids_of(likely(p, 1, 0, 0.001)) == Ids{1});
  CHECK(ids_of(likely(p, 1, 0, 0.5)) == Ids{1});
  CHECK(ids_of(likely(p, 1, 0, 0.51)) == Ids{1, 2});
  CHECK(ids_of(likely(p, 1, 0, 0.75)) == Ids{1, 2});
  CHECK(ids_of(likely(p, 1, 0, 0.76)) == Ids{1, 2, 0});  // 0 and 3 are equal: the lower id first
  CHECK(ids_of(likely(p, 1, 0, 0.9)) == Ids{1, 2, 0, 3});
  const auto two = likely(p, 1, 0, 0.6);
  CHECK(two[0].probability == Approx(2.0 / 3));
  CHECK(two[1].probability == Approx(1.0 / 3));
  // top-p is of what top-k left: 1 and 2 have 2/3 and 1/3 there.
  CHECK(ids_of(likely(p, 1, 2, 0.66)) == Ids{1});
  CHECK(ids_of(likely(p, 1, 2, 0.67)) == Ids{1, 2});
}

TEST_CASE("temperature takes powers of the probabilities", "[decode]") {
  const std::vector<double> p{0.1, 0.2, 0.3, 0.4};
  for (const double t : {0.25, 0.5, 1.0, 2.0, 7.0}) {
    double sum = 0;
    for (const auto each : p) sum += std::pow(each, 1 / t);
    const auto all = likely(p, t, 0, 1);
    REQUIRE(all.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(all[i].probability == Approx(std::pow(p[i], 1 / t) / sum));
  }
  const auto cold = likely(p, 1e-6, 0, 1);
  CHECK(cold[3].probability == 1);
  CHECK(ids_of(likely(p, 1e-6, 0, 0.9999)) == Ids{3});
  CHECK(ids_of(likely(p, 1e6, 0, 0.74)) == Ids{3, 2, 1});  // all but equal
}

TEST_CASE("what has no probability is never drawn", "[decode]") {
  CHECK(ids_of(likely({0, 0.5, 0, 0.5}, 1, 0, 1)) == Ids{1, 3});
  CHECK(ids_of(likely({0, 0.5, 0, 0.5}, 1, 3, 1)) == Ids{1, 3});
  CHECK(likely({0, 0}, 1, 0, 1).empty());
  Random random(1);
  for (int i = 0; i < 1000; ++i) CHECK(draw(likely({0, 1, 0}, 1, 0, 1), random) == 1);
}

TEST_CASE("tokens are drawn as often as their probabilities say", "[decode]") {
  // 40 000 first tokens of 5 that may be drawn: Pearson's statistic has 4 degrees of freedom, and passes 35 with
  // probability 5e-7.
  const std::vector<double> p{0, 0, 0, 0.05, 0.4, 0.3, 0.15, 0.1};  // pad 0, unk 1, bos 2, eos 3
  const auto log_p = logs({1e-9, 1e-9, 1e-9, 0.05, 0.4, 0.3, 0.15, 0.1});
  const auto frequencies = [&](const SearchOptions& options) {
    PlaceStepper stepper({log_p, log_p});
    Forward run;
    constexpr int64_t B = 40000;
    std::vector<int64_t> counts(8, 0);
    const auto found =
        search(stepper, torch::full({B, 1}, words.bos, torch::kLong), std::vector<int64_t>(B, 1), words, options, run);
    for (const auto& each : found) ++counts[each[0].ids.empty() ? 3 : static_cast<std::size_t>(each[0].ids[0])];
    return counts;
  };
  const auto expected = [&](double temperature, const Ids& kept) {
    std::vector<double> q(8, 0);
    double sum = 0;
    for (const auto id : kept)
      sum += q[static_cast<std::size_t>(id)] = std::pow(p[static_cast<std::size_t>(id)], 1 / temperature);
    for (auto& each : q) each /= sum;
    return q;
  };
  struct Case {
    SearchOptions options;
    double temperature;
    Ids kept;
  };
  for (const auto& c : {Case{sampling(1), 1, {3, 4, 5, 6, 7}}, Case{sampling(2), 2, {3, 4, 5, 6, 7}},
                        Case{sampling(1, 3), 1, {4, 5, 6}}, Case{sampling(1, 0, 0.8), 1, {4, 5, 6}},
                        Case{sampling(0.5, 4, 0.85), 0.5, {4, 5}}}) {
    const auto counts = frequencies(c.options);
    const auto q = expected(c.temperature, c.kept);
    CAPTURE(counts, q);
    CHECK(chi_square(counts, q) < 35);
    for (std::size_t id = 0; id < 8; ++id)
      if (q[id] == 0 && id != 1) CHECK(counts[id] == 0);
  }
}

TEST_CASE("the same seed gives the same texts, another seed others, and each line and each draw its own", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  auto options = sampling(1.5);
  options.max_length = 12;
  options.n_best = 3;
  const auto source = sentences({6}, 2)[0];
  const std::vector<Ids> sources(4, source);  // the same line four times
  const auto first = translated(*model, sources, options), again = translated(*model, sources, options);
  options.seed = 2;
  const auto other = translated(*model, sources, options);
  std::set<Ids> texts;
  int same_as_other = 0;
  for (std::size_t b = 0; b < sources.size(); ++b) {
    REQUIRE(first[b].size() == 3);
    for (std::size_t n = 0; n < 3; ++n) {
      CHECK(first[b][n].ids == again[b][n].ids);
      CHECK(first[b][n].score == again[b][n].score);
      same_as_other += first[b][n].ids == other[b][n].ids;
      texts.insert(first[b][n].ids);
    }
  }
  CHECK(texts.size() >= 10);
  CHECK(same_as_other <= 2);
}

TEST_CASE("what is drawn for a line does not depend on its batch, nor on how many are drawn", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  auto options = sampling(1.2, 15, 0.95);
  options.max_length = 14;
  const auto sources = sentences({3, 9, 1, 12, 5, 7}, 5);
  const auto together = translated(*model, sources, options), in_parts = translated(*model, sources, options, 12);
  options.n_best = 4;
  const auto four = translated(*model, sources, options);
  bool longer = false;
  for (std::size_t b = 0; b < sources.size(); ++b) {
    CHECK(together[b][0].ids == in_parts[b][0].ids);
    CHECK(together[b][0].ids == four[b][0].ids);
    longer = longer || together[b][0].ids.size() > 3;
    Forward alone;
    alone.rows_B = torch::full({1}, static_cast<int64_t>(b), torch::kLong);
    options.n_best = 1;
    const auto found = translate_ids(*model, {sources[b]}, words, words, options, 100, alone);
    CHECK(found[0][0].ids == together[b][0].ids);
    CHECK(found[0][0].score == Approx(together[b][0].score));
  }
  CHECK(longer);
}

TEST_CASE("temperature 0 is greedy search, and so is drawing from one token", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  const auto sources = sentences({4, 8, 2}, 7);
  SearchOptions greedy;
  greedy.beam = 1;
  greedy.max_length = 15;
  auto one = sampling(1, 1), cold = sampling(1e-9), tiny = sampling(1, 0, 1e-9);
  const auto expected = translated(*model, sources, greedy);
  for (auto* options : {&one, &cold, &tiny}) {
    options->max_length = 15;
    const auto found = translated(*model, sources, *options);
    for (std::size_t b = 0; b < sources.size(); ++b) {
      CHECK(found[b][0].ids == expected[b][0].ids);
      CHECK(found[b][0].log_probability == Approx(expected[b][0].log_probability));
    }
  }
}

TEST_CASE("a drawn text has the model's own probability, whatever it was drawn from", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  auto options = sampling(3, 12, 0.9);
  options.max_length = 9;
  const auto sources = sentences({5, 2, 9}, 6);
  const auto found = translated(*model, sources, options);
  for (std::size_t b = 0; b < sources.size(); ++b) {
    Forward run;
    const torch::NoGradGuard no_grad;
    auto source = sources[b], in = found[b][0].ids, out = in;
    source.push_back(words.eos);
    in.insert(in.begin(), words.bos);
    out.push_back(words.eos);
    const auto logits =
        model->logits({torch::tensor(source).unsqueeze(0), {}, torch::tensor(in).unsqueeze(0), {}}, run);
    const auto log_p =
        torch::log_softmax(logits[0], -1).gather(1, torch::tensor(out).unsqueeze(1)).sum().item<double>();
    CHECK(found[b][0].log_probability == Approx(log_p));
    CHECK(found[b][0].score ==
          Approx(log_p / length_divisor(static_cast<int64_t>(out.size()), options.length_penalty)));
  }
}

TEST_CASE("every output goes on from a forced prefix: greedy, by beam, and drawn", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  const auto sources = sentences({4, 8, 2}, 7);
  const Ids prefix{7, 11, 5};
  auto drawn = sampling(1.3);
  drawn.n_best = 2;
  SearchOptions greedy, beam;
  greedy.beam = 1;
  beam.beam = beam.n_best = 4;
  for (auto options : {greedy, beam, drawn}) {
    options.max_length = 8;
    const auto found = translated(*model, sources, options, 1000, prefix);
    for (std::size_t b = 0; b < sources.size(); ++b) {
      REQUIRE(static_cast<int64_t>(found[b].size()) == options.n_best);
      for (const auto& hypothesis : found[b]) {
        CHECK(hypothesis.ids.size() <= 8);  // the prefix does not count
        Forward run;
        const torch::NoGradGuard no_grad;
        auto source = sources[b];
        source.push_back(words.eos);
        Ids in{words.bos};
        in.insert(in.end(), prefix.begin(), prefix.end());
        in.insert(in.end(), hypothesis.ids.begin(), hypothesis.ids.end());
        auto out = hypothesis.ids;
        out.push_back(words.eos);
        const auto logits =
            model->logits({torch::tensor(source).unsqueeze(0), {}, torch::tensor(in).unsqueeze(0), {}}, run);
        const auto log_p = torch::log_softmax(logits[0].slice(0, static_cast<int64_t>(prefix.size())), -1);
        CHECK(hypothesis.log_probability ==
              Approx(log_p.gather(1, torch::tensor(out).unsqueeze(1)).sum().item<double>()));
      }
    }
    // A prefix that the search would have written by itself changes nothing.
    const auto free = translated(*model, sources, options);
    if (options.draws() || free[0][0].ids.size() < 2) continue;
    auto shorter = options;
    shorter.max_length = 7;
    shorter.beam = shorter.n_best = 1;
    auto plain = options;
    plain.beam = plain.n_best = 1;
    const auto begun =
        translated(*model, {sources[0]}, shorter, 1000, {translated(*model, {sources[0]}, plain)[0][0].ids[0]});
    const auto whole = translated(*model, {sources[0]}, plain)[0][0].ids;
    CHECK(begun[0][0].ids == Ids(whole.begin() + 1, whole.end()));
  }
}

TEST_CASE("a prompt is continued as alone, whatever stands beside it, with and without ends of text", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = storyteller();
  const auto prompts = sentences({5, 2, 5, 9, 0}, 3);
  for (const bool with_ends : {true, false}) {
    const TextIds ids = with_ends ? TextIds{} : TextIds{.pad = 0, .bos = 2, .eos = -1, .unk = 1};
    auto drawn = sampling(0.9, 10);
    auto greedy = sampling(0);
    greedy.beam = 1;
    for (auto options : {drawn, greedy}) {
      options.max_length = 11;
      Forward run;
      const auto together = continue_ids(*model, prompts, ids, options, 10000, run);
      CHECK_FALSE(run.rows_B.defined());
      const auto one_by_one = continue_ids(*model, prompts, ids, options, 1, run);
      REQUIRE(together.size() == prompts.size());
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        CHECK(together[i][0].ids == one_by_one[i][0].ids);
        if (!with_ends) CHECK(together[i][0].ids.size() == 11);
        CHECK(together[i][0].ids.size() <= 11);
        Forward alone;
        alone.rows_B = torch::full({1}, static_cast<int64_t>(i), torch::kLong);
        CHECK(continue_ids(*model, {prompts[i]}, ids, options, 100, alone)[0][0].ids == together[i][0].ids);
      }
    }
  }
}

TEST_CASE("a text without a begin of text begins with its prompt, which must be there", "[decode]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = storyteller();
  const TextIds bare{.pad = 0, .bos = -1, .eos = -1, .unk = 1};
  auto greedy = sampling(0);
  greedy.beam = 1;
  greedy.max_length = 6;
  const Ids prompt{9, 4, 17};
  Forward run;
  const auto found = continue_ids(*model, {prompt}, bare, greedy, 100, run)[0][0].ids;
  REQUIRE(found.size() == 6);
  auto text = prompt;
  for (const auto id : found) {
    const torch::NoGradGuard no_grad;
    auto logits = model->logits({{}, {}, torch::tensor(text).unsqueeze(0), {}}, run)[0][-1].clone();
    logits[0] = never;
    CHECK(logits.argmax().item<int64_t>() == id);
    text.push_back(id);
  }
  CHECK_THROWS_WITH(continue_ids(*model, {prompt, {}}, bare, greedy, 100, run),
                    ContainsSubstring("expected a beginning of at least one token"));
  auto beam = greedy;
  beam.beam = 3;
  CHECK_THROWS_WITH(continue_ids(*model, {prompt}, bare, beam, 100, run),
                    ContainsSubstring("expected beam 1 or a temperature above 0, got beam 3"));
  CHECK_THROWS_WITH(continue_ids(*model, {prompt, Ids(65, 5)}, bare, greedy, 100, run),
                    "generate: prompt 2: expected at most 64 tokens, got 65; shorten it");
  // A prompt that fills the model leaves room for nothing more than its end.
  CHECK(continue_ids(*model, {Ids(64, 5)}, bare, greedy, 100, run)[0][0].ids.empty());
}

TEST_CASE("options of what is drawn without a temperature are a mistake", "[decode]") {
  const auto problems = [](const SearchOptions& options) {
    Problems found;
    options.rules(found);
    return found.found.empty() ? std::string() : found.found[0].field;
  };
  CHECK(problems(sampling(0.5, 3, 0.5)).empty());
  CHECK(problems(sampling(0)).empty());
  CHECK(problems(sampling(0, 3)) == "top_k");
  CHECK(problems(sampling(0, 0, 0.5)) == "top_p");
  auto many = sampling(1);
  many.n_best = 50;  // draws need no beam
  CHECK(problems(many).empty());
  many.temperature = 0;
  CHECK(problems(many) == "n_best");
}

TEST_CASE("texts are generated from prompts, with the prefix before each", "[decode]") {
  struct Letters : WritesText {
    Ids encode(const std::string& prompt) const override {
      Ids ids;
      for (const char c : prompt) ids.push_back(c - 'a' + 4);
      return ids;
    }
    std::string decode(const Ids& ids) const override {
      std::string text;
      for (const auto id : ids) text += id < 4 ? std::string() : std::string(1, static_cast<char>('a' + id - 4));
      return text;
    }
    TextIds text_ids() const override { return {}; }
  };
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = storyteller();
  auto options = sampling(1);
  options.max_length = 5;
  options.n_best = 2;
  options.prefix = "ha";
  const auto all = continue_texts(*model, Letters(), {"bc", "", "bc"}, options, 1000);
  REQUIRE(all.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(all[i].size() == 2);
    for (const auto& [score, text] : all[i]) {
      CHECK(text.rfind(i == 1 ? "ha" : "habc", 0) == 0);
      CHECK(text.size() <= (i == 1 ? 7 : 9));
      CHECK(score < 0);
    }
  }
  // Prompts that come later are numbered on: what is drawn is what it would be in one call.
  const auto later = continue_texts(*model, Letters(), {"bc"}, options, 1000, 2)[0];
  for (std::size_t n = 0; n < 2; ++n) {
    CHECK(later[n].second == all[2][n].second);
    CHECK(later[n].first == Approx(all[2][n].first));
  }
}

}  // namespace headlab
