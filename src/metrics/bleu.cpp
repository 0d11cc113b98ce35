#include "src/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "modules/base/nearest.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

constexpr std::size_t max_order = 4;

using Text = std::u32string;
using NGram = std::array<int32_t, max_order>;  // ids of tokens, -1 beyond its order
using NGrams = std::map<NGram, int64_t>;

Text stripped_right(Text text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
  return text;
}

std::vector<Text> split(const Text& text) {
  std::vector<Text> words;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

void replace_all(Text& text, const Text& from, const Text& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != Text::npos; at += to.size()) text.replace(at, from.size(), to);
}

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_stop(char32_t c) { return c == U'.' || c == U','; }

/// ASCII that always stands alone: all punctuation but the apostrophe, the comma, the hyphen and the full stop.
bool is_symbol(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') || (c >= U'(' && c <= U'+') ||
         (c >= U':' && c <= U'@') || c == U'/';
}

/// Puts spaces around pairs of neighbours: where first(a) and second(b), "ab" becomes before + a + between + b + after.
/// Pairs do not overlap and are taken from the left, as substitution by a regular expression does.
template <class First, class Second>
Text space_pairs(const Text& text, First first, Second second, const Text& before, const Text& between,
                 const Text& after) {
  Text result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      result += before;
      result += text[i];
      result += between;
      result += text[++i];
      result += after;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// The tokenization of mteval-v13a, the script of the NIST evaluations: symbols stand alone, full stops and commas do
/// unless between digits, a hyphen does after a digit.
std::vector<Text> tokenize_13a(Text text) {
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
  text = U" " + text + U" ";
  Text spaced;
  for (const char32_t c : text) {
    if (is_symbol(c)) {
      spaced += U' ';
      spaced += c;
      spaced += U' ';
    } else {
      spaced += c;
    }
  }
  const auto no_digit = [](char32_t c) { return !is_digit(c); };
  spaced = space_pairs(spaced, no_digit, is_stop, U"", U" ", U" ");
  spaced = space_pairs(spaced, is_stop, no_digit, U" ", U" ", U"");
  spaced = space_pairs(spaced, is_digit, [](char32_t c) { return c == U'-'; }, U"", U" ", U" ");
  return split(spaced);
}

std::vector<Text> tokenize_char(Text text) {
  std::vector<Text> tokens;
  for (const char32_t c : text) {
    if (!is_space(c)) tokens.emplace_back(1, c);
  }
  return tokens;
}

std::vector<Text> tokenize_none(Text text) { return split(text); }

const std::map<std::string, std::vector<Text> (*)(Text)>& tokenizers() {
  static const std::map<std::string, std::vector<Text> (*)(Text)> table = {
      {"13a", tokenize_13a}, {"char", tokenize_char}, {"none", tokenize_none}};
  return table;
}

std::vector<Text> tokens_of(const std::string& text, const BleuOptions& options) {
  Text line = decode_utf8(text);
  if (options.lower_case) line = lower(line);
  return tokenizers().at(options.tokenizer)(stripped_right(std::move(line)));
}

NGrams ngrams_of(const std::vector<Text>& tokens, std::unordered_map<Text, int32_t>& ids) {
  std::vector<int32_t> sequence;
  for (const Text& token : tokens) {
    sequence.push_back(ids.try_emplace(token, static_cast<int32_t>(ids.size())).first->second);
  }
  NGrams ngrams;
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    NGram ngram;
    ngram.fill(-1);
    for (std::size_t n = 0; n < max_order && at + n < sequence.size(); ++n) {
      ngram[n] = sequence[at + n];
      ++ngrams[ngram];
    }
  }
  return ngrams;
}

std::size_t order_of(const NGram& ngram) {
  return static_cast<std::size_t>(std::count_if(ngram.begin(), ngram.end(), [](int32_t id) { return id >= 0; }));
}

/// Of lengths equally close to the hypothesis' the shortest.
int64_t closest(int64_t length, const std::vector<int64_t>& references) {
  return *std::min_element(references.begin(), references.end(), [&](int64_t a, int64_t b) {
    const int64_t from_a = std::abs(a - length), from_b = std::abs(b - length);
    return from_a != from_b ? from_a < from_b : a < b;
  });
}

double smoothing_value(const BleuOptions& options) {
  return options.smoothing_value.value_or(options.smoothing == "floor" ? 0.1 : 1.0);
}

}  // namespace

void BleuOptions::describe(Fields& fields) {
  fields.add("tokenizer", tokenizer, "13a as in the NIST evaluations; char for scripts without spaces; none: spaces")
      .one_of({"13a", "char", "none"});
  fields.add("smoothing", smoothing, "what orders without a match count").one_of({"exp", "floor", "add-k", "none"});
  fields.add("smoothing_value", smoothing_value, "what floor puts and add-k adds")
      .at_least(0)
      .means("absent: 0.1 for floor, 1 for add-k");
  fields.add("effective_order", effective_order, "leave out the orders that a text is too short for");
  fields.add("lower_case", lower_case, "compare without case");
}

void BleuOptions::rules(Problems& problems) const {
  if (smoothing_value && smoothing != "floor" && smoothing != "add-k") {
    problems.add("smoothing_value", "expected smoothing \"floor\" or \"add-k\" beside it, got " + in_quotes(smoothing));
  }
}

double BleuScore::ratio() const {
  return reference_length == 0 ? 0 : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
}

std::string BleuScore::text(int decimals) const {
  std::string by_order;
  for (const double p : precisions) by_order += (by_order.empty() ? "" : "/") + fixed(p, 1);
  return fixed(score, decimals) + " " + by_order + " (BP = " + fixed(brevity_penalty, 3) +
         " ratio = " + fixed(ratio(), 3) + " hyp_len = " + std::to_string(hypothesis_length) +
         " ref_len = " + std::to_string(reference_length) + ")";
}

BleuScore Bleu::corpus(const std::vector<std::string>& hypotheses,
                       const std::vector<std::vector<std::string>>& references) const {
  return score(sum_of(counts(hypotheses, references)));
}

BleuScore Bleu::sentence(const std::string& hypothesis, const std::vector<std::string>& references) const {
  return score(counts(hypothesis, references));
}

std::vector<Counts> Bleu::counts(const std::vector<std::string>& hypotheses,
                                 const std::vector<std::vector<std::string>>& references) const {
  check_layout("bleu", hypotheses, references);
  std::vector<Counts> result;
  std::vector<std::string> of_sentence(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) of_sentence[r] = references[r][i];
    result.push_back(counts(hypotheses[i], of_sentence));
  }
  return result;
}

Counts Bleu::counts(const std::string& hypothesis, const std::vector<std::string>& references) const {
  if (references.empty()) check_layout("bleu", {hypothesis}, {});
  std::unordered_map<Text, int32_t> ids;
  NGrams expected;
  std::vector<int64_t> lengths;
  for (const std::string& reference : references) {
    const std::vector<Text> words = tokens_of(reference, options_);
    lengths.push_back(static_cast<int64_t>(words.size()));
    for (const auto& [ngram, count] : ngrams_of(words, ids)) expected[ngram] = std::max(expected[ngram], count);
  }
  const std::vector<Text> words = tokens_of(hypothesis, options_);
  const auto length = static_cast<int64_t>(words.size());
  Counts result(2 + 2 * max_order, 0);
  result[0] = length;
  result[1] = closest(length, lengths);
  for (const auto& [ngram, count] : ngrams_of(words, ids)) {
    const std::size_t order = order_of(ngram);
    result[1 + max_order + order] += count;
    const auto match = expected.find(ngram);
    if (match != expected.end()) result[1 + order] += std::min(count, match->second);
  }
  return result;
}

BleuScore Bleu::score(const Counts& counts) const {
  BleuScore result;
  result.hypothesis_length = counts.at(0);
  result.reference_length = counts.at(1);
  const auto hypothesis = static_cast<double>(counts[0]), reference = static_cast<double>(counts[1]);
  if (counts[0] < counts[1]) result.brevity_penalty = counts[0] > 0 ? std::exp(1 - reference / hypothesis) : 0;
  const auto matches = counts.begin() + 2, totals = matches + max_order;
  if (std::all_of(matches, totals, [](int64_t n) { return n == 0; })) return result;

  const double value = smoothing_value(options_);
  double halving = 1;
  std::size_t orders = max_order;
  for (std::size_t n = 0; n < max_order; ++n) {
    const double added = options_.smoothing == "add-k" && n > 0 ? value : 0;
    const double correct = static_cast<double>(counts.at(2 + n)) + added;
    const double total = static_cast<double>(counts.at(2 + max_order + n)) + added;
    if (total == 0) break;
    if (options_.effective_order) orders = n + 1;
    if (correct != 0) {
      result.precisions[n] = 100 * correct / total;
    } else if (options_.smoothing == "exp") {
      halving *= 2;
      result.precisions[n] = 100 / (halving * total);
    } else if (options_.smoothing == "floor") {
      result.precisions[n] = 100 * value / total;
    }
  }
  double logs = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    const double p = result.precisions[n];
    logs += p == 0 ? -9999999999 : std::log(p);  // sacreBLEU's stand-in for minus infinity
  }
  result.score = result.brevity_penalty * std::exp(logs / static_cast<double>(orders));
  return result;
}

std::string Bleu::signature(int64_t references) const {
  std::string smoothing = options_.smoothing;
  if (smoothing == "floor" || smoothing == "add-k") smoothing += "[" + fixed(smoothing_value(options_), 2) + "]";
  return "nrefs:" + std::to_string(references) + "|case:" + (options_.lower_case ? "lc" : "mixed") +
         "|eff:" + (options_.effective_order ? "yes" : "no") + "|tok:" + options_.tokenizer + "|smooth:" + smoothing +
         "|version:" + sacrebleu_version;
}

std::vector<std::string> Bleu::tokens(const std::string& text) const {
  std::vector<std::string> result;
  for (const Text& token : tokens_of(text, options_)) result.push_back(encode_utf8(token));
  return result;
}

}  // namespace headlab
