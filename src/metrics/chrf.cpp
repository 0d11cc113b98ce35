#include "src/metrics/chrf.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "src/text/unicode.h"

namespace headlab {
namespace {

using Text = std::u32string;

/// The n-grams of one order with their counts.
template <class Key>
using Order = std::unordered_map<Key, int64_t>;

/// A text made ready: its characters, its words, and their n-grams order by order.
class Segment {
 public:
  Segment(const std::string& text, const ChrfOptions& options) {
    Text line = decode_utf8(text);
    if (options.lower_case) line = lower(line);
    for (const char32_t c : line) {
      if (options.whitespace || !is_space(c)) characters_ += c;
    }
    const std::u32string_view view(characters_);
    for (std::size_t n = 1; n <= static_cast<std::size_t>(options.char_order); ++n) {
      Order<std::u32string_view>& order = character_ngrams_.emplace_back();
      for (std::size_t at = 0; at + n <= view.size(); ++at) ++order[view.substr(at, n)];
    }
    if (options.word_order == 0) return;
    const std::vector<Text> words = words_of(line);
    for (std::size_t n = 1; n <= static_cast<std::size_t>(options.word_order); ++n) {
      Order<Text>& order = word_ngrams_.emplace_back();
      for (std::size_t at = 0; at + n <= words.size(); ++at) {
        Text ngram = words[at];
        for (std::size_t k = 1; k < n; ++k) ngram += U" " + words[at + k];
        ++order[ngram];
      }
    }
  }
  Segment(const Segment&) = delete;  // the keys of character_ngrams_ point into characters_
  Segment& operator=(const Segment&) = delete;

  Counts compare(const Segment& reference) const {
    Counts counts;
    for (std::size_t n = 0; n < character_ngrams_.size(); ++n) {
      append(character_ngrams_[n], reference.character_ngrams_[n], counts);
    }
    for (std::size_t n = 0; n < word_ngrams_.size(); ++n) append(word_ngrams_[n], reference.word_ngrams_[n], counts);
    return counts;
  }

 private:
  static bool is_punctuation(char32_t c) {
    return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~');
  }

  static std::vector<Text> words_of(const Text& line) {
    std::vector<Text> words;
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at;
      while (end < line.size() && !is_space(line[end])) ++end;
      const Text word = line.substr(at, end - at);
      if (word.size() > 1 && is_punctuation(word.back())) {
        words.push_back(word.substr(0, word.size() - 1));
        words.push_back(word.substr(word.size() - 1));
      } else if (word.size() > 1 && is_punctuation(word.front())) {
        words.push_back(word.substr(0, 1));
        words.push_back(word.substr(1));
      } else if (!word.empty()) {
        words.push_back(word);
      }
      at = end + 1;
    }
    return words;
  }

  template <class Key>
  static void append(const Order<Key>& hypothesis, const Order<Key>& reference, Counts& counts) {
    int64_t in_hypothesis = 0, in_reference = 0, matches = 0;
    for (const auto& [ngram, count] : reference) in_reference += count;
    for (const auto& [ngram, count] : hypothesis) {
      in_hypothesis += count;
      const auto match = reference.find(ngram);
      if (match != reference.end()) matches += std::min(count, match->second);
    }
    // A reference too short for the order takes it out of the comparison.
    counts.insert(counts.end(), {reference.empty() ? 0 : in_hypothesis, in_reference, matches});
  }

  Text characters_;
  std::vector<Order<std::u32string_view>> character_ngrams_;
  std::vector<Order<Text>> word_ngrams_;
};

}  // namespace

void ChrfOptions::describe(Fields& fields) {
  fields.add("char_order", char_order, "longest n-grams of characters").at_least(1).unit("characters");
  fields.add("word_order", word_order, "longest n-grams of words; 2 is chrF++")
      .at_least(0)
      .unit("words")
      .means("0: none");
  fields.add("beta", beta, "recall counts beta times as much as precision").at_least(1);
  fields.add("lower_case", lower_case, "compare without case");
  fields.add("whitespace", whitespace, "count white space as characters");
}

ChrfScore Chrf::corpus(const std::vector<std::string>& hypotheses,
                       const std::vector<std::vector<std::string>>& references) const {
  return score(sum_of(counts(hypotheses, references)));
}

ChrfScore Chrf::sentence(const std::string& hypothesis, const std::vector<std::string>& references) const {
  return score(counts(hypothesis, references));
}

std::vector<Counts> Chrf::counts(const std::vector<std::string>& hypotheses,
                                 const std::vector<std::vector<std::string>>& references) const {
  check_layout("chrf", hypotheses, references);
  std::vector<Counts> result;
  std::vector<std::string> of_sentence(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) of_sentence[r] = references[r][i];
    result.push_back(counts(hypotheses[i], of_sentence));
  }
  return result;
}

Counts Chrf::counts(const std::string& hypothesis, const std::vector<std::string>& references) const {
  if (references.empty()) check_layout("chrf", {hypothesis}, {});
  const Segment segment(hypothesis, options_);
  Counts best;
  double best_score = -1;
  for (const std::string& reference : references) {
    Counts these = segment.compare(Segment(reference, options_));
    const double value = score(these).score;
    if (value > best_score) {  // the first of equals
      best_score = value;
      best = std::move(these);
    }
  }
  return best;
}

ChrfScore Chrf::score(const Counts& counts) const {
  const auto factor = static_cast<double>(options_.beta * options_.beta);
  double precision = 0, recall = 0;
  int64_t orders = 0;
  for (std::size_t at = 0; at + 3 <= counts.size(); at += 3) {
    if (counts[at] == 0 || counts[at + 1] == 0) continue;
    const auto matches = static_cast<double>(counts[at + 2]);
    precision += matches / static_cast<double>(counts[at]);
    recall += matches / static_cast<double>(counts[at + 1]);
    ++orders;
  }
  if (orders == 0) return {0};
  precision /= static_cast<double>(orders);
  recall /= static_cast<double>(orders);
  if (precision + recall == 0) return {0};
  return {100 * ((1 + factor) * precision * recall / (factor * precision + recall))};
}

std::string Chrf::name() const {
  return "chrF" + std::to_string(options_.beta) + std::string(static_cast<std::size_t>(options_.word_order), '+');
}

std::string Chrf::signature(int64_t references) const {
  return "nrefs:" + std::to_string(references) + "|case:" + (options_.lower_case ? "lc" : "mixed") +
         "|eff:yes|nc:" + std::to_string(options_.char_order) + "|nw:" + std::to_string(options_.word_order) +
         "|space:" + (options_.whitespace ? "yes" : "no") + "|version:" + sacrebleu_version;
}

}  // namespace headlab
