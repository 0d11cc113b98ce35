// The table that says which tests prove each component of the Transformer, and each fault that users of other systems
// met: tests/coverage.json. A component or a case without a test, and a test that does not exist, fail here.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "modules/base/atomic_file.h"
#include "modules/base/nearest.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/skip.h"

using namespace headlab;

namespace {

const nlohmann::json& coverage() {
  static const auto table = nlohmann::json::parse(read_file(test::in_source("tests/coverage.json")));
  return table;
}

/// All that there must be tests of; the table may not lose a row.
const std::vector<std::string> components{"tokens: words",
                                          "tokens: characters",
                                          "tokens: subwords by byte pairs and unigrams",
                                          "tokens: WordPiece",
                                          "unknown words",
                                          "embedding and its scale",
                                          "one matrix for source, target and output",
                                          "positions: sinusoidal",
                                          "positions: learned",
                                          "positions: rotary",
                                          "positions: linear biases",
                                          "positions: relative",
                                          "scores: scaled dot product",
                                          "scores: variance of dot products",
                                          "scores: additive",
                                          "heads: any number, widths and groups",
                                          "heads: values of their own width",
                                          "masks: causal, padding, window",
                                          "attention to the source",
                                          "feed-forward by position",
                                          "feed-forward: gated",
                                          "feed-forward: none, persistent vectors",
                                          "gates: rounded, with a warm-up",
                                          "normalisation: layer norm and none",
                                          "normalisation: root mean square",
                                          "normalisation: min-max",
                                          "place of the norm: before, after",
                                          "place of the norm: both",
                                          "dropout",
                                          "label smoothing",
                                          "penalties on weights",
                                          "early stopping",
                                          "augmentation",
                                          "optimiser: AdamW, gradient limit, accumulation",
                                          "optimisers: Adam, SGD",
                                          "schedules",
                                          "decoding: greedy and beam",
                                          "decoding: sampling",
                                          "average of checkpoints",
                                          "cost: parameters, operations, memory",
                                          "precision: float64, bfloat16, float16",
                                          "positions: rotary, with frequencies of each head",
                                          "gates: heads that keep the tokens that picked them",
                                          "gates and mixers: heads by the length of a text",
                                          "mixers: n-grams, alone and beside attention heads",
                                          "gates: importances of heads for each token",
                                          "decoders: recurrent, with heads",
                                          "losses: CTC"};

const std::vector<std::string> cases{"nan-grad-masked-row",
                                     "batch-changes-text",
                                     "dropout-in-eval",
                                     "prune-whole-layer",
                                     "score-twice",
                                     "mask-ignored-on-fast-path",
                                     "cross-uses-encoder-mask",
                                     "uneven-reload",
                                     "gates-never-close",
                                     "padding-in-balance-loss",
                                     "router-normalised-twice",
                                     "traced-shape",
                                     "device-frozen",
                                     "odd-width-positions",
                                     "too-long",
                                     "mean-of-means",
                                     "resume-resets",
                                     "window-cache",
                                     "early-stop-depends-on-n",
                                     "references-transposed",
                                     "line-counts",
                                     "dropped-keys",
                                     "half-overflow",
                                     "tied-weights"};

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

}  // namespace

TEST_CASE("every component and every case has its row in the table of tests") {
  CHECK(keys_of(coverage()["components"]) == std::set<std::string>(components.begin(), components.end()));
  CHECK(keys_of(coverage()["cases"]) == std::set<std::string>(cases.begin(), cases.end()));
}

TEST_CASE("every row names at least one test, unless it is listed as open") {
  std::set<std::string> without;
  for (const auto* part : {"components", "cases"})
    for (const auto& [row, tests] : coverage()[part].items())
      if (tests.empty()) without.insert(row);
  const auto open = coverage()["open"].get<std::set<std::string>>();
  for (const auto& row : without) {
    INFO("tests/coverage.json: " << row << " names no test");
    CHECK(open.count(row) == 1);
  }
  for (const auto& row : open) {
    INFO("tests/coverage.json: " << row << " names tests, so it is not open");
    CHECK(without.count(row) == 1);
  }
}

TEST_CASE("every test that the table names exists, and tests of cases carry their names") {
  const auto registered = headlab::test::registered_tests();
  CHECK(registered.size() > 300);
  const std::set<std::string> known(registered.begin(), registered.end());
  for (const auto* part : {"components", "cases"})
    for (const auto& [row, tests] : coverage()[part].items())
      for (const std::string name : tests) {
        INFO("tests/coverage.json: " << row << ": no test is called \"" << name << "\""
                                     << did_you_mean(name, registered));
        CHECK(known.count(name) == 1);
        if (std::string(part) == "cases") CHECK(name.rfind(row + ": ", 0) == 0);
      }
  // And the other way: a test that begins with the name of a case is in the case's row.
  for (const auto& name : registered)
    for (const auto& one : cases) {
      if (name.rfind(one + ": ", 0) != 0) continue;
      const auto& row = coverage()["cases"][one];
      INFO("tests/coverage.json: " << one << " does not name \"" << name << "\"");
      CHECK(std::find(row.begin(), row.end(), name) != row.end());
    }
}
