#include "src/decode/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "modules/tensor/torch.h"
#include "src/decode/translate.h"
#include "tests/catch.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

/// A table in place of a model: the next token's logits depend on the row's example, the place and the last two tokens.
struct TableStepper : Stepper {
  TableStepper(int64_t examples, int64_t vocabulary, int64_t limit, uint64_t seed, double spread)
      : V(vocabulary), limit(limit) {
    table = torch::empty({examples, limit + 1, V, V, V}, torch::kFloat64)
                .normal_(0, spread, named_generator(seed, "table"));
    rows.resize(examples);
    std::iota(rows.begin(), rows.end(), 0);
    texts.resize(examples);
  }
  Tensor step(const Tensor& ids_BT, Forward& run) override {
    REQUIRE(ids_BT.size(0) == static_cast<int64_t>(texts.size()));
    std::vector<Tensor> logits;
    for (std::size_t r = 0; r < texts.size(); ++r) {
      for (int64_t t = 0; t < ids_BT.size(1); ++t) texts[r].push_back(ids_BT[r][t].item<int64_t>());
      logits.push_back(of(rows[r], texts[r]));
      REQUIRE(run.rows_B[r].item<int64_t>() == rows[r]);  // the pass knows whose row this is
    }
    steps += 1;
    return torch::stack(logits);
  }
  Tensor of(int64_t example, const std::vector<int64_t>& text) const {  // text starts with bos
    const auto n = text.size();
    return table[example][n - 1][text[n - 1]][n > 1 ? text[n - 2] : 0];
  }
  void reorder(const Tensor& rows_B) override {
    std::vector<std::vector<int64_t>> new_texts;
    std::vector<int64_t> new_rows;
    for (int64_t r = 0; r < rows_B.size(0); ++r) {
      new_texts.push_back(texts[rows_B[r].item<int64_t>()]);
      new_rows.push_back(rows[rows_B[r].item<int64_t>()]);
    }
    texts = new_texts;
    rows = new_rows;
  }
  int64_t max_length() const override { return limit + 1; }

  int64_t V, limit, steps = 0;
  Tensor table;
  std::vector<int64_t> rows;
  std::vector<std::vector<int64_t>> texts;
};

const TextIds toy{.pad = 0, .bos = 1, .eos = 2};

/// Every text of the table's language with at most `limit` words, the best first.
Hypotheses all_texts(const TableStepper& model, int64_t example, double alpha) {
  Hypotheses all;
  std::function<void(std::vector<int64_t>, double)> go = [&](std::vector<int64_t> text, double log_p) {
    const auto next = torch::log_softmax(model.of(example, text), -1);
    const auto words = static_cast<int64_t>(text.size()) - 1;
    const auto total = log_p + next[toy.eos].item<double>();
    all.push_back({{text.begin() + 1, text.end()}, total, total / length_divisor(words + 1, alpha)});
    if (words == model.limit) return;
    for (int64_t token = 3; token < model.V; ++token) {
      auto longer = text;
      longer.push_back(token);
      go(longer, log_p + next[token].item<double>());
    }
  };
  go({toy.bos}, 0);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

SearchOptions options_of(int64_t beam, double alpha, int64_t n_best = 1) {
  SearchOptions options;
  options.beam = beam;
  options.length_penalty = alpha;
  options.n_best = n_best;
  return options;
}

std::vector<Hypotheses> search_table(TableStepper model, const SearchOptions& options,
                                     std::vector<int64_t> limits = {}) {
  Forward run;
  if (limits.empty()) limits.assign(model.texts.size(), model.limit);
  const auto first = torch::full({static_cast<int64_t>(limits.size()), 1}, toy.bos, torch::kLong);
  return search(model, first, limits, toy, options, run);
}

const TextIds words{};

std::vector<Hypotheses> search_model(Model& model, const std::vector<std::vector<int64_t>>& sources,
                                     const SearchOptions& options) {
  Forward run;
  return translate_ids(model, sources, words, words, options, 1000, run);
}

/// The log-probability of a text after `before` (bos included), without caches.
double log_probability(Model& model, const Batch& source, std::vector<int64_t> before, std::vector<int64_t> text) {
  auto in = before;
  in.insert(in.end(), text.begin(), text.end());
  text.push_back(words.eos);
  Forward run;
  const torch::NoGradGuard no_grad;
  const auto logits = model.logits({source.source_BS, {}, torch::tensor(in).unsqueeze(0), {}}, run);
  const auto log_p = torch::log_softmax(logits[0].slice(0, static_cast<int64_t>(before.size()) - 1), -1);
  return log_p.gather(1, torch::tensor(text).unsqueeze(1)).sum().item<double>();
}

}  // namespace

TEST_CASE("a beam as wide as the language finds the best texts of all") {
  const auto alpha = GENERATE(0.0, 0.6, 1.0, 2.5);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const TableStepper model(3, 6, 4, seed, 1.0);
    const auto found = search_table(model, options_of(400, alpha, 5));
    for (int64_t example = 0; example < 3; ++example) {
      const auto expected = all_texts(model, example, alpha);
      REQUIRE(found[example].size() == 5);
      for (int64_t n = 0; n < 5; ++n) {
        CHECK(found[example][n].ids == expected[n].ids);
        CHECK(found[example][n].score == Approx(expected[n].score));
        CHECK(found[example][n].log_probability == Approx(expected[n].log_probability));
      }
    }
  }
}

TEST_CASE("early-stop-depends-on-n: the best text is the same with n-best 1 and 5", "[cases]") {
  const auto alpha = GENERATE(0.0, 0.6, 1.0, 2.5);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TableStepper model(2, 6, 8, seed, 1.5);
    const auto one = search_table(model, options_of(5, alpha, 1)), five = search_table(model, options_of(5, alpha, 5));
    for (int64_t example = 0; example < 2; ++example) {
      CHECK(one[example][0].ids == five[example][0].ids);
      CHECK(one[example][0].score == five[example][0].score);
      CHECK(std::is_sorted(five[example].begin(), five[example].end(),
                           [](const auto& a, const auto& b) { return a.score > b.score; }));
    }
  }
}

TEST_CASE("a text that gets better by its length is not lost to an early stop") {
  // Ending at once costs log 2; going on costs a little more at each step, and its score is the better one in the end.
  TableStepper model(1, 4, 6, 1, 1.0);
  model.table.fill_(-1e4);
  const auto say = [&](int64_t place, double p_end) {
    model.table[0][place].select(-1, 2).fill_(std::log(p_end));
    model.table[0][place].select(-1, 3).fill_(std::log(1 - p_end));
  };
  say(0, 0.5);
  for (int64_t place = 1; place < 6; ++place) say(place, 0.01);
  say(6, 0.99);
  const auto found = search_table(model, options_of(2, 1.0));
  CHECK(found[0][0].ids == std::vector<int64_t>(6, 3));
  const auto without_penalty = search_table(model, options_of(2, 0.0));
  CHECK(without_penalty[0][0].ids.size() <= 6);
  CHECK(without_penalty[0][0].log_probability >= found[0][0].log_probability);
}

TEST_CASE("the search stops as soon as nothing better can come") {
  TableStepper model(1, 4, 30, 1, 1.0);
  model.table.fill_(0);
  model.table.select(-1, 2).fill_(20);  // eos is all but certain everywhere
  Forward run;
  const auto found = search(model, torch::full({1, 1}, toy.bos, torch::kLong), {30}, toy, options_of(3, 0.6), run);
  CHECK(found[0][0].ids.empty());
  CHECK(model.steps == 1);
}

TEST_CASE("beam 1 is greedy search") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TableStepper model(2, 6, 8, seed, 1.5);
    const auto found = search_table(model, options_of(1, 0.6));
    for (int64_t example = 0; example < 2; ++example) {
      std::vector<int64_t> text{toy.bos};
      double log_p = 0;
      while (true) {
        auto next = torch::log_softmax(model.of(example, text), -1);
        next[toy.pad] = next[toy.bos] = -INFINITY;
        const auto token = static_cast<int64_t>(text.size()) > model.limit ? toy.eos : next.argmax().item<int64_t>();
        log_p += next[token].item<double>();
        if (token == toy.eos) break;
        text.push_back(token);
      }
      CHECK(found[example][0].ids == std::vector<int64_t>(text.begin() + 1, text.end()));
      CHECK(found[example][0].log_probability == Approx(log_p));
      CHECK(found[example][0].score == Approx(log_p / length_divisor(static_cast<int64_t>(text.size()), 0.6)));
    }
  }
}

TEST_CASE("equal probabilities: the lower id is written") {
  TableStepper model(1, 9, 3, 1, 1.0);
  model.table.fill_(0);
  model.table.select(-1, 2).fill_(-5);
  model.table.select(2, 1).select(-1, 7).fill_(1);  // the first word is 7; all after it are alike
  for (int64_t beam : {1, 2, 3}) {
    const auto found = search_table(model, options_of(beam, 0.0));
    CHECK(found[0][0].ids.size() <= 3);
    if (beam == 1) CHECK(found[0][0].ids == std::vector<int64_t>{7, 3, 3});
  }
  model.table.select(-1, 2).fill_(-1000);
  for (int64_t beam : {2, 3}) {
    const auto found = search_table(model, options_of(beam, 0.0, 2));
    CHECK(found[0][0].ids == std::vector<int64_t>{7, 3, 3});
    CHECK(found[0][1].ids == std::vector<int64_t>{7, 3, 4});
  }
}

TEST_CASE("no text is longer than its limit, and pad and bos are never written") {
  for (int64_t beam : {1, 3}) {
    TableStepper model(3, 6, 9, 5, 1.0);
    model.table.select(-1, toy.eos).fill_(-30);  // never ends of itself
    model.table.select(-1, toy.pad).fill_(30);
    model.table.select(-1, toy.bos).fill_(30);
    const auto found = search_table(model, options_of(beam, 0.6, beam), {0, 4, 9});
    for (int64_t example = 0; example < 3; ++example) {
      const auto limit = std::vector<std::size_t>{0, 4, 9}[example];
      for (const auto& hypothesis : found[example]) {
        CHECK(hypothesis.ids.size() <= limit);
        for (const auto id : hypothesis.ids) CHECK(id > 2);
      }
      CHECK(found[example][0].ids.size() == limit);
    }
  }
}

TEST_CASE("an example's texts do not depend on the rest of its batch") {
  for (int64_t beam : {1, 4}) {
    const TableStepper all(5, 6, 8, 3, 1.5);
    const std::vector<int64_t> limits{8, 2, 5, 8, 0};
    const auto together = search_table(all, options_of(beam, 0.6, beam), limits);
    for (int64_t example = 0; example < 5; ++example) {
      TableStepper alone(1, 6, 8, 3, 1.5);
      alone.table = all.table.narrow(0, example, 1);
      const auto found = search_table(alone, options_of(beam, 0.6, beam), {limits[example]});
      REQUIRE(found[0].size() == together[example].size());
      for (std::size_t n = 0; n < found[0].size(); ++n) {
        CHECK(found[0][n].ids == together[example][n].ids);
        CHECK(found[0][n].score == together[example][n].score);
      }
    }
  }
}

TEST_CASE("a model that gives NaN is an error, not a text") {
  TableStepper model(1, 6, 4, 1, 1.0);
  model.table.fill_(NAN);
  for (int64_t beam : {1, 3}) CHECK_THROWS_WITH(search_table(model, options_of(beam, 0.6)), ContainsSubstring("NaN"));
}

TEST_CASE("batch-changes-text: a sentence beside longer ones is translated as alone", "[cases]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  const auto sources = sentences({3, 11, 1, 7}, 4);
  for (int64_t beam : {1, 4}) {
    const auto together = search_model(*model, sources, options_of(beam, 0.6));
    for (std::size_t b = 0; b < sources.size(); ++b) {
      const auto alone = search_model(*model, {sources[b]}, options_of(beam, 0.6));
      CHECK(alone[0][0].ids == together[b][0].ids);
      CHECK(alone[0][0].score == Approx(together[b][0].score));
      CHECK(together[b][0].ids.size() <= sources[b].size() + 1 + 50);
    }
  }
}

TEST_CASE("a text's log-probability is what the model gives it without caches") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  const auto sources = sentences({5, 2, 9}, 6);
  for (int64_t beam : {1, 4}) {
    auto options = options_of(beam, 0.6, beam);
    options.max_length = 12;
    const auto found = search_model(*model, sources, options);
    for (std::size_t b = 0; b < sources.size(); ++b) {
      auto source = sources[b];
      source.push_back(words.eos);
      Batch batch;
      batch.source_BS = torch::tensor(source).unsqueeze(0);
      for (const auto& hypothesis : found[b])
        CHECK(hypothesis.log_probability == Approx(log_probability(*model, batch, {words.bos}, hypothesis.ids)));
    }
  }
}

TEST_CASE("a scale for each example follows its rows") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator();
  const auto sources = sentences({4, 9, 2, 6, 3}, 8);
  std::map<Stack, Tensor> scale;
  for (const auto& [stack, ones] : model->ones())
    scale[stack] = noise({5, ones.size(0), ones.size(1)}, stack_name(stack)).abs();
  for (int64_t beam : {1, 4}) {
    Forward run;
    run.scale = scale;
    const auto together = translate_ids(*model, sources, words, words, options_of(beam, 0.6), 16, run);
    CHECK_FALSE(run.rows_B.defined());
    bool matters = false;
    for (std::size_t b = 0; b < sources.size(); ++b) {
      Forward alone;
      for (const auto& [stack, all] : scale) alone.scale[stack] = all[static_cast<int64_t>(b)];
      const auto found = translate_ids(*model, {sources[b]}, words, words, options_of(beam, 0.6), 16, alone);
      CHECK(found[0][0].ids == together[b][0].ids);
      CHECK(found[0][0].score == Approx(together[b][0].score));
      matters = matters || search_model(*model, {sources[b]}, options_of(beam, 0.6))[0][0].ids != found[0][0].ids;
    }
    CHECK(matters);
  }
}

TEST_CASE("dropout-in-eval: decoding runs in eval mode and gives each module its mode back", "[cases]") {
  const auto model = translator([](auto& options) { options.dropout = 0.8; });
  const auto sources = sentences({5, 3}, 9);
  const auto in_eval = search_model(*model, sources, options_of(3, 0.6));
  model->train();
  model->modules(false).back()->eval();
  const auto modes = [&] {
    std::vector<bool> all;
    for (const auto& module : model->modules()) all.push_back(module->is_training());
    return all;
  };
  const auto before = modes();
  const auto in_training = search_model(*model, sources, options_of(3, 0.6));
  CHECK(modes() == before);
  for (std::size_t b = 0; b < sources.size(); ++b) {
    CHECK(in_eval[b][0].ids == in_training[b][0].ids);
    CHECK(in_eval[b][0].score == in_training[b][0].score);
  }
}

TEST_CASE("a decoder goes on from a beginning") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = storyteller();
  const auto beginnings = sentences({5, 5}, 3);
  Batch batch;
  batch.target_BT = torch::stack({torch::tensor(beginnings[0]), torch::tensor(beginnings[1])});
  for (int64_t beam : {1, 4}) {
    auto options = options_of(beam, 0.6);
    options.max_length = 8;
    Forward run;
    const auto found = search(*model, batch, words, options, run);
    REQUIRE(found.size() == 2);
    for (std::size_t b = 0; b < 2; ++b) {
      auto before = beginnings[b];
      before.insert(before.begin(), words.bos);
      CHECK(found[b][0].log_probability == Approx(log_probability(*model, {}, before, found[b][0].ids)));
      CHECK(found[b][0].ids.size() <= 8);
    }
  }
}

TEST_CASE("too-long: a text beyond the model's limit is an error with both lengths", "[cases]") {
  const auto model = translator([](auto& options) { options.embedding.max_length = 8; });
  CHECK_THROWS_WITH(search_model(*model, sentences({2, 8}, 1), options_of(1, 0.6)),
                    "translate: source 2: expected at most 8 tokens with eos, got 9; raise model.embedding.max_length");
  const auto found = search_model(*model, sentences({2, 7}, 1), options_of(4, 0.6));
  for (const auto& hypotheses : found) CHECK(hypotheses[0].ids.size() <= 7);  // no output outgrows the model
}

TEST_CASE("translations come in the order of their sources, whatever the batches") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = translator({}, 4);
  const auto sources = sentences({3, 9, 1, 0, 12, 5, 3}, 40);
  Forward run;
  const auto alone = translate_ids(*model, sources, words, words, options_of(3, 0.6), 1, run);
  const auto together = translate_ids(*model, sources, words, words, options_of(3, 0.6), 1000, run);
  REQUIRE(alone.size() == sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(alone[i][0].ids == together[i][0].ids);
  CHECK(translate_ids(*model, {}, words, words, options_of(3, 0.6), 10, run).empty());
}

}  // namespace headlab
