#include "src/metrics/answers.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "src/metrics/labels.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

std::vector<std::string> answer_words(const std::string& text) {
  std::vector<std::string> words;
  std::u32string word;
  const auto end = [&] {
    if (word.empty()) return;
    const auto utf8 = encode_utf8(word);
    if (utf8 != "a" && utf8 != "an" && utf8 != "the") words.push_back(utf8);
    word.clear();
  };
  for (const auto c : lower(decode_utf8(text))) {
    if (is_space(c))
      end();
    else if (!is_ascii_punctuation(c))
      word += c;
  }
  end();
  return words;
}

}  // namespace

std::string normalised_answer(const std::string& text) {
  std::string joined;
  for (const auto& word : answer_words(text)) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

double exact_match(const std::string& gold, const std::string& predicted) {
  return normalised_answer(gold) == normalised_answer(predicted) ? 1 : 0;
}

double answer_f1(const std::string& gold, const std::string& predicted) {
  const auto expected = answer_words(gold), got = answer_words(predicted);
  if (expected.empty() || got.empty()) return expected.empty() && got.empty() ? 1 : 0;
  std::map<std::string, int64_t> left;
  for (const auto& word : expected) ++left[word];
  int64_t common = 0;
  for (const auto& word : got)
    if (left[word] > 0) {
      --left[word];
      ++common;
    }
  return f1_score(common, static_cast<int64_t>(got.size()), static_cast<int64_t>(expected.size())).f1;
}

}  // namespace headlab
