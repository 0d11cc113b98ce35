#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/metrics/bleu.h"
#include "src/metrics/chrf.h"
#include "tests/catch.h"
#include "tests/support/places.h"

using namespace headlab;
using Json = nlohmann::json;

namespace {

const Json& golden() {
  static const Json json = [] {
    std::ifstream file(test::in_source("tests/golden/metrics.json"));
    REQUIRE(file);
    return Json::parse(file);
  }();
  return json;
}

using Lines = std::vector<std::string>;

struct Corpus {
  Lines hypotheses;
  std::vector<Lines> references;
};

Corpus corpus_of(const Json& test) {
  const Json& entry = golden()["corpora"][test["corpus"].get<std::string>()];
  Corpus corpus{entry["hypotheses"].get<Lines>(), entry["references"].get<std::vector<Lines>>()};
  corpus.references.resize(test["references"].get<std::size_t>());
  return corpus;
}

Bleu bleu_of(const Json& options) {
  BleuOptions result;
  result.tokenizer = options.value("tokenizer", result.tokenizer);
  result.smoothing = options.value("smoothing", result.smoothing);
  if (options.contains("smoothing_value")) result.smoothing_value = options["smoothing_value"].get<double>();
  result.effective_order = options.value("effective_order", false);
  result.lower_case = options.value("lower_case", false);
  return Bleu(result);
}

Chrf chrf_of(const Json& options) {
  ChrfOptions result;
  result.char_order = options.value("char_order", result.char_order);
  result.word_order = options.value("word_order", result.word_order);
  result.beta = options.value("beta", result.beta);
  result.lower_case = options.value("lower_case", false);
  result.whitespace = options.value("whitespace", false);
  return Chrf(result);
}

/// Far below any printed digit; the order of the operations is sacreBLEU's, only exp and log may differ in the last
/// bit.
void check_close(double got, double expected) {
  CAPTURE(got, expected);
  CHECK(std::abs(got - expected) <= 1e-11);
}

template <class Metric>
void check_case(const Json& test, const Metric& metric, const std::string& name) {
  CAPTURE(test["corpus"], test["options"], test["references"]);
  const Corpus corpus = corpus_of(test);
  const auto score = metric.corpus(corpus.hypotheses, corpus.references);
  const auto count = static_cast<int64_t>(corpus.references.size());
  CHECK(name + "|" + metric.signature(count) + " = " + score.text() == test["line"].get<std::string>());
  check_close(score.score, test["score"].get<double>());
  if (!test.contains("sentences")) return;
  for (std::size_t i = 0; i < corpus.hypotheses.size(); ++i) {
    CAPTURE(i);
    Lines references;
    for (const Lines& set : corpus.references) references.push_back(set[i]);
    check_close(metric.sentence(corpus.hypotheses[i], references).score, test["sentences"][i].get<double>());
  }
}

}  // namespace

TEST_CASE("BLEU prints what sacreBLEU prints", "[metrics]") {
  int cases = 0;
  for (const Json& test : golden()["cases"]) {
    if (test["metric"] != "bleu") continue;
    check_case(test, bleu_of(test["options"]), "BLEU");
    ++cases;
  }
  CHECK(cases >= 100);
}

TEST_CASE("chrF and chrF++ print what sacreBLEU prints", "[metrics]") {
  int cases = 0;
  for (const Json& test : golden()["cases"]) {
    if (test["metric"] != "chrf") continue;
    const Chrf chrf = chrf_of(test["options"]);
    check_case(test, chrf, chrf.name());
    ++cases;
  }
  CHECK(cases >= 50);
}

TEST_CASE("text falls into the tokens that sacreBLEU counts", "[metrics]") {
  const auto texts = golden()["texts"].get<Lines>();
  for (const Json& set : golden()["tokens"]) {
    BleuOptions options;
    options.tokenizer = set["tokenizer"].get<std::string>();
    options.lower_case = set["lower_case"].get<bool>();
    const Bleu bleu(options);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(options.tokenizer, i);
      std::string joined;
      for (const std::string& token : bleu.tokens(texts[i])) joined += (joined.empty() ? "" : " ") + token;
      CHECK(joined == set["tokens"][i].get<std::string>());
    }
  }
}

TEST_CASE("the goldens are of the sacreBLEU that the signature names", "[metrics]") {
  CHECK(golden()["versions"]["sacrebleu"].get<std::string>() == sacrebleu_version);
}
