#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "modules/base/error.h"
#include "src/spec/document.h"
#include "src/spec/dump.h"
#include "src/spec/expect.h"
#include "src/spec/expression.h"
#include "src/spec/override.h"
#include "src/spec/path.h"
#include "src/spec/reader.h"
#include "src/spec/sweep.h"
#include "tests/spec/toy.h"
#include "tools/fuzz/targets.h"

namespace headlab::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* of_spec = "spec";
constexpr const char* of_expression = "expression";

bool has_repeats(const Node& node) {
  for (const auto& item : node.items)
    if (has_repeats(item)) return true;
  for (const auto& member : node.members)
    if (member.first || has_repeats(member.value)) return true;
  return false;
}

/// Against the other JSON parser: both take the text or neither, and read the same.
void compare_with_nlohmann(const std::string& text, const Document* accepted, const std::string& refusal) {
  if (text.find('\0') != std::string::npos) return;  // ends the text there
  const auto other = Json::parse(text, nullptr, false);
  if (!accepted) {
    const bool ours_alone = refusal.find("nested deeper than 100") != std::string::npos ||
                            refusal.find("the number is too large") != std::string::npos;
    if (!other.is_discarded() && !ours_alone) broken(of_spec, "refused a JSON text: " + refusal);
    return;
  }
  if (other.is_discarded()) broken(of_spec, "accepted what is no JSON text");
  if (!has_repeats(accepted->root()) && to_json(accepted->root()) != other)
    broken(of_spec, "read another value than the text has");
}

void check_refusal(const std::exception& error) {
  check_message(of_spec, error.what());
  const std::string_view text = error.what();
  if (text.substr(0, 7) != "x.json:" && text.substr(0, 6) != "--set ")
    broken(of_spec, "a mistake without a place: " + std::string(text));
}

const Json& results() {
  static const Json all =
      Json::parse(R"({"full": {"bleu": 78.4, "signature": "nrefs:1", "lost": null}, "pruned": {"bleu": 77.6},
      "random": [{"bleu": 70.5}, {"bleu": 71}], "curve": [3, 2, 1], "empty": [], "enc.self.0.3": {"bleu": 5}, "a": 1, "b": {"a": -2}})");
  return all;
}

}  // namespace

int fuzz_spec(const uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  static const std::string mark = "\n--set ";
  const auto end = std::min(input.find(mark), input.size());
  const auto text = input.substr(0, end);
  std::vector<std::string> overrides;
  for (auto at = end; at < input.size();) {
    const auto from = at + mark.size();
    at = std::min(input.find(mark, from), input.size());
    overrides.push_back(input.substr(from, at - from));
  }
  try {
    std::optional<Document> document;
    try {
      document = Document::parse_text(text, "x.json");
    } catch (const UsageError& error) {
      compare_with_nlohmann(text, nullptr, error.what());
      throw;
    }
    compare_with_nlohmann(text, &*document, "");
    auto mistakes = apply_overrides(*document, overrides);
    std::size_t tried = 0;
    for (auto& variant : expand(*document)) {
      toy::ToySpec spec;
      const auto found = read(variant.document, spec);
      mistakes.insert(mistakes.end(), found.begin(), found.end());
      if (found.empty()) {
        const auto dumped = dump_text(spec);
        toy::ToySpec again;
        read_or_throw(Document::parse_text(dumped, "x.json"), again);
        if (dump_text(again) != dumped) broken(of_spec, "a dump reads back to another: " + dumped);
        for (const auto& claim : spec.expect) {
          try {
            judge(claim, results());
          } catch (const Error& error) {
            check_message(of_spec, error.what());
          }
        }
      }
      if (++tried == 5) break;  // the runs of one sweep differ in little
    }
    throw_mistakes(sorted(std::move(mistakes)));
  } catch (const UsageError& error) {
    check_refusal(error);
  } catch (const std::exception& error) {
    broken(of_spec, std::string("another exception than a mistake: ") + error.what());
  }
  return 0;
}

std::vector<std::string> spec_seeds() {
  return {
      "{}",
      R"({"model": {"vocabulary": 9}})",
      R"({"$schema": "x", "name": "t", "question": null, "quiet": true, "seeds": [1, 2e0], "languages": ["en", "fr"], "model":
{"vocabulary": 1e3, "dropout": 0.25, "attention": {"heads": 4, "width": 64, "bias": false, "position": {"type": "rope",
"base": 50.5, "fraction": 1}, "gates": ["none", {"type": "table", "length": 3}]}}, "stages": ["train", {"train": {"steps": 20,
"warmup": null, "optimizer": "sgd", "betas": [0.5, 0.25]}}, {"prune": {"fraction": 0}}], "sweep": null, "expect": [{"claim":
"c\u00e4\ud83d\ude00", "that": "mean(random.bleu) + 3", "at_least": "full.bleu"}, {"that": "a", "equals": 1, "within": 0.5}]})",
      R"({"model": {"vocabulary": 9}, "sweep": {"seeds": [[1], [2, 3]], "model.attention.heads": [4, 8]}})",
      R"({"model": {"vocabulary": 9}, "sweep": [{"model.dropout": 0}, {"model.attention.position": "rope"}]})",
      "{\"model\": {\"vocabulary\": 9}}\n--set model.attention.position.base=500\n--set stages=[\"train\"]\n--set "
      "stages[0].train.steps=5",
      "{\"model\": {\"attention\": {\"gates\": [\"rope\"]}}}\n--set model.attention.gates[0].base=3\n--set "
      "model.attention.gates[1]=none"};
}

std::string mutate_spec(const std::string& input, Random& random) {
  static const std::vector<std::string> words{"\"name\"",
                                              "\"question\"",
                                              "\"quiet\"",
                                              "\"seeds\"",
                                              "\"languages\"",
                                              "\"model\"",
                                              "\"stages\"",
                                              "\"sweep\"",
                                              "\"expect\"",
                                              "\"vocabulary\"",
                                              "\"dropout\"",
                                              "\"attention\"",
                                              "\"heads\"",
                                              "\"width\"",
                                              "\"bias\"",
                                              "\"position\"",
                                              "\"gates\"",
                                              "\"type\"",
                                              "\"rope\"",
                                              "\"none\"",
                                              "\"table\"",
                                              "\"base\"",
                                              "\"fraction\"",
                                              "\"length\"",
                                              "\"train\"",
                                              "\"prune\"",
                                              "\"evaluate\"",
                                              "\"steps\"",
                                              "\"warmup\"",
                                              "\"optimizer\"",
                                              "\"betas\"",
                                              "\"sgd\"",
                                              "\"claim\"",
                                              "\"that\"",
                                              "\"at_least\"",
                                              "\"equals\"",
                                              "\"within\"",
                                              "\"model.attention.heads\"",
                                              "\"stages[0].train.steps\"",
                                              "\"seeds\"",
                                              "\"full.bleu\"",
                                              "\"mean(random.bleu)\"",
                                              "\"$schema\"",
                                              "\"en\"",
                                              "4",
                                              "64",
                                              "9",
                                              "0.5",
                                              "[1]",
                                              "[1,2]",
                                              "{\"train\":{}}",
                                              "{\"type\":\"rope\"}",
                                              "{\"vocabulary\":9}"};
  static const std::vector<std::string> sets{"model.vocabulary=9",
                                             "model.attention.position=rope",
                                             "seeds=[1,2]",
                                             "stages[0]=train",
                                             "sweep.seeds=[[1],[2]]",
                                             "a.b[0].c=1",
                                             "model=3",
                                             "name=",
                                             "=",
                                             "x",
                                             "expect[0].that=a",
                                             "sweep={\"seeds\":[[1],[2]]}"};
  if (random.below(12) == 0) return input + "\n--set " + sets[static_cast<std::size_t>(random.below(sets.size()))];
  return mutate_json(input, words, random);
}

int fuzz_expression(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (!is_utf8(text)) return 0;  // a spec that is not UTF-8 never gets as far
  try {
    const auto expression = Expression::parse(text);
    if (expression.text() != text) broken(of_expression, "another text");
    for (const auto& name : expression.names())
      if (text.find(name) == std::string::npos) broken(of_expression, "a name that the text has not: " + name);
    try {
      expression.evaluate(results());
    } catch (const Error& error) {
      check_message(of_expression, error.what());
    }
  } catch (const UsageError& error) {
    check_message(of_expression, error.what());
    if (std::string_view(error.what()).substr(0, 26) != "syntax error at character ")
      broken(of_expression, std::string("no place: ") + error.what());
  } catch (const std::exception& error) {
    broken(of_expression, std::string("another exception than a mistake: ") + error.what());
  }
  const auto steps = parse_path(text);
  if (steps.empty()) return 0;
  const auto again = path_text(steps, steps.size());
  const auto twice = parse_path(again);
  if (twice.size() != steps.size()) broken(of_expression, "a path reads back as another: " + again);
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (twice[i].key != steps[i].key || twice[i].index != steps[i].index)
      broken(of_expression, "a path reads back as another: " + again);
  return 0;
}

std::vector<std::string> expression_seeds() {
  return {"pruned.bleu",
          "full.bleu - 0.5",
          "mean(random.bleu) + 3 * abs(-1)",
          "max(curve, a, 2) / (1 + b.a)",
          "enc.self.0.3.bleu",
          "random.0.bleu - 1",
          "min(empty)",
          "1 / 0",
          "-(-(+1e3)) * .5",
          "stages[0].train.steps",
          "model.width",
          "a[0][1].b-c_d.$schema[7]",
          "full.signature",
          "curve.2"};
}

std::string mutate_expression(const std::string& input, Random& random) {
  static const std::vector<std::string> words{
      "full.bleu", "random.bleu", "curve", "empty", "a", "b.a",        "mean(", "abs(",     "min(",     "max(",
      ")",         "(",           "+",     "-",     "*", "/",          ",",     "1e999",    "0",        "1e-400",
      ".",         "..",          "[0]",   "[",     "]", "[99999999]", "$",     "\xC3\xA4", "full.lost"};
  auto text = input;
  const auto at = static_cast<std::size_t>(random.below(text.size() + 1));
  switch (random.below(5)) {
    case 0:
    case 1:
      return text.insert(at, words[static_cast<std::size_t>(random.below(words.size()))]);
    case 2: {
      std::string open;
      for (auto n = random.below(130); n > 0; --n) open += "(";
      return text.insert(at, open);
    }
    default:
      return mutate_bytes(text, "abemnx01.()+-*/,[] \t$_\xFF", random);
  }
}

}  // namespace headlab::fuzz
