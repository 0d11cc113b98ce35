#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "modules/base/error.h"
#include "src/text/basic_tokens.h"
#include "src/text/unicode.h"
#include "src/text/word_piece.h"

namespace headlab {
namespace {

/// x log x, from a table where x is small.
class Entropy {
 public:
  Entropy() : table_(1 << 20) {
    for (std::size_t x = 1; x < table_.size(); ++x) table_[x] = of(static_cast<double>(x));
  }
  double operator()(int64_t x) const {
    return x < static_cast<int64_t>(table_.size()) ? table_[static_cast<std::size_t>(x)] : of(static_cast<double>(x));
  }

 private:
  static double of(double x) { return x * std::log(x); }
  std::vector<double> table_;
};

struct Word {
  std::vector<int> pieces;
  int64_t count;  // in the text
};

struct Pair {
  int first, second, joined;  // texts
  int64_t count = 0;
  std::vector<int> words;  // where it stands, or stood; not all of them for ever
};

/// Words cut into pieces, and the pairs of neighbours among them, kept true while pairs are joined.
class Joining {
 public:
  void add(const std::u32string& word, int64_t count) {
    Word cut{{}, count};
    for (std::size_t i = 0; i < word.size(); ++i)
      cut.pieces.push_back(text((i > 0 ? "##" : "") + encode_utf8(word.substr(i, 1))));
    for (const auto piece : cut.pieces) {
      counts_[static_cast<std::size_t>(piece)] += count;
      total_ += count;
      learn(piece);
    }
    words_.push_back(std::move(cut));
    note(static_cast<int>(words_.size()) - 1, 1);
  }

  /// Joins the best pair; false where there is none.
  bool join_best() {
    const Pair* best = nullptr;
    double gain = 0;
    for (const auto& pair : pairs_) {
      if (pair.count == 0) continue;
      const auto of_pair = gain_of(pair);
      if (!best || of_pair > gain || (of_pair == gain && before(pair, *best))) {
        best = &pair;
        gain = of_pair;
      }
    }
    if (!best) return false;
    join(static_cast<std::size_t>(best - pairs_.data()));
    return true;
  }

  int64_t learnt() const { return static_cast<int64_t>(learnt_.size()); }
  /// The pieces, the characters sorted first, then in the order they were joined.
  std::vector<std::string> pieces(std::size_t characters) const {
    std::vector<std::string> all;
    for (const auto piece : learnt_) all.push_back(texts_[static_cast<std::size_t>(piece)]);
    std::sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(characters));
    return all;
  }

 private:
  int text(const std::string& piece) {
    const auto [found, is_new] = numbers_.emplace(piece, static_cast<int>(texts_.size()));
    if (is_new) {
      texts_.push_back(piece);
      counts_.push_back(0);
      known_.push_back(false);
    }
    return found->second;
  }

  void learn(int piece) {
    if (known_[static_cast<std::size_t>(piece)]) return;
    known_[static_cast<std::size_t>(piece)] = true;
    learnt_.push_back(piece);
  }

  /// Adds a word's pairs to the counts, or (sign -1) takes them off. Of "aaa" one pair can be joined.
  void note(int index, int64_t sign) {
    const auto& word = words_[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i + 1 < word.pieces.size(); ++i) {
      auto& pair = pairs_[pair_of(word.pieces[i], word.pieces[i + 1])];
      pair.count += sign * word.count;
      if (sign > 0 && (pair.words.empty() || pair.words.back() != index)) pair.words.push_back(index);
      if (word.pieces[i] == word.pieces[i + 1] && i + 2 < word.pieces.size() && word.pieces[i + 2] == word.pieces[i])
        ++i;
    }
  }

  std::size_t pair_of(int first, int second) {
    const auto [found, is_new] = pair_numbers_.emplace(std::pair(first, second), pairs_.size());
    if (is_new) {
      const auto joined =
          text(texts_[static_cast<std::size_t>(first)] + texts_[static_cast<std::size_t>(second)].substr(2));
      pairs_.push_back({first, second, joined, 0, {}});
    }
    return found->second;
  }

  double gain_of(const Pair& pair) const {
    const auto n = pair.count, a = counts_[static_cast<std::size_t>(pair.first)],
               b = counts_[static_cast<std::size_t>(pair.second)], r = counts_[static_cast<std::size_t>(pair.joined)];
    const auto apart = pair.first == pair.second ? f_(a - 2 * n) - f_(a) : f_(a - n) - f_(a) + f_(b - n) - f_(b);
    return apart + f_(r + n) - f_(r) + f_(total_) - f_(total_ - n);
  }

  bool before(const Pair& a, const Pair& b) const {
    const auto& left = texts_[static_cast<std::size_t>(a.joined)];
    const auto& right = texts_[static_cast<std::size_t>(b.joined)];
    return std::tie(b.count, left, a.first) < std::tie(a.count, right, b.first);
  }

  void join(std::size_t number) {
    const auto [first, second, joined] = std::tuple(pairs_[number].first, pairs_[number].second, pairs_[number].joined);
    for (const auto index : std::exchange(pairs_[number].words, {})) {
      auto& word = words_[static_cast<std::size_t>(index)];
      std::vector<int> pieces;
      for (std::size_t i = 0; i < word.pieces.size(); ++i) {
        const bool here = word.pieces[i] == first && i + 1 < word.pieces.size() && word.pieces[i + 1] == second;
        pieces.push_back(here ? joined : word.pieces[i]);
        i += here;
      }
      if (pieces.size() == word.pieces.size()) continue;
      note(index, -1);
      for (const auto piece : word.pieces) counts_[static_cast<std::size_t>(piece)] -= word.count;
      for (const auto piece : pieces) counts_[static_cast<std::size_t>(piece)] += word.count;
      total_ -= word.count * static_cast<int64_t>(word.pieces.size() - pieces.size());
      word.pieces = std::move(pieces);
      note(index, 1);
    }
    learn(joined);
  }

  Entropy f_;
  std::vector<Word> words_;
  std::vector<std::string> texts_;  // of pieces, and of what pairs would become
  std::vector<int64_t> counts_;     // of each text as a piece
  std::vector<bool> known_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<int> learnt_;
  std::vector<Pair> pairs_;
  std::map<std::pair<int, int>, std::size_t> pair_numbers_;
  int64_t total_ = 0;
};

/// The characters that make up the share `coverage` of the text, the most frequent first.
std::unordered_map<char32_t, bool> covered(const std::map<std::u32string, int64_t>& words, double coverage) {
  std::map<char32_t, int64_t> counts;
  int64_t total = 0, so_far = 0;
  for (const auto& [word, count] : words)
    for (const auto c : word) {
      counts[c] += count;
      total += count;
    }
  std::vector<std::pair<int64_t, char32_t>> order;
  for (const auto& [c, count] : counts) order.emplace_back(-count, c);
  std::sort(order.begin(), order.end());
  std::unordered_map<char32_t, bool> kept;
  for (const auto& [count, c] : order) {
    if (static_cast<double>(so_far) >= coverage * static_cast<double>(total)) break;
    kept[c] = true;
    so_far -= count;
  }
  return kept;
}

}  // namespace

std::vector<std::string> train_word_piece(const std::vector<const std::string*>& lines,
                                          const TokenizerOptions& options) {
  std::map<std::u32string, int64_t> words;
  for (const auto* line : lines)
    for (const auto& word : basic_tokens(decode_utf8(*line), options.lower_case)) ++words[word];
  if (words.empty())
    throw Error("training the tokenizer: expected words, got " + std::to_string(lines.size()) + " lines without one");
  const auto kept = covered(words, options.character_coverage);
  Joining joining;
  for (const auto& [word, count] : words)
    if (std::all_of(word.begin(), word.end(), [&](char32_t c) { return kept.count(c) > 0; })) joining.add(word, count);
  const std::vector<std::string> special{"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  const auto characters = joining.learnt();
  const auto room = options.vocabulary - static_cast<int64_t>(special.size());
  const auto vocabulary = "vocabulary " + std::to_string(options.vocabulary);
  if (characters > room)
    throw Error(vocabulary + " is less than the characters of the text need (min " + std::to_string(characters + 4) +
                "); lower character_coverage leaves out rare characters");
  while (joining.learnt() < room && joining.join_best()) {}
  if (joining.learnt() < room)
    throw Error(vocabulary + " is more than the text supports (max " + std::to_string(joining.learnt() + 4) + ")");
  auto pieces = special;
  for (const auto& piece : joining.pieces(static_cast<std::size_t>(characters))) pieces.push_back(piece);
  return pieces;
}

}  // namespace headlab
