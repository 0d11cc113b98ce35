#include <algorithm>
#include <cctype>

#include "tools/fuzz/targets.h"

namespace headlab::fuzz {
namespace {

std::size_t below(Random& random, std::size_t n) {
  return static_cast<std::size_t>(random.below(std::max<std::size_t>(n, 1)));
}

const std::string& one_of(const std::vector<std::string>& items, Random& random) {
  return items[below(random, items.size())];
}

// Numbers, strings and pieces that parsers stumble over.
const std::vector<std::string>& odd_values() {
  static const std::vector<std::string> all{"0",
                                            "-0",
                                            "-0.0",
                                            "1",
                                            "-1",
                                            "1e999",
                                            "-1e999",
                                            "1e-999",
                                            "1e308",
                                            "5e-324",
                                            "0.1",
                                            "1.5",
                                            "2.0",
                                            "1e3",
                                            "1E+2",
                                            "0e0",
                                            "9223372036854775807",
                                            "9223372036854775808",
                                            "-9223372036854775808",
                                            "18446744073709551615",
                                            "18446744073709551616",
                                            "1e18",
                                            "123456789012345678901234567890",
                                            "0.30000000000000004",
                                            "1.7976931348623159e308",
                                            "4.9e-324",
                                            "2147483648",
                                            "4294967296",
                                            "NaN",
                                            "Infinity",
                                            "-Infinity",
                                            "nan",
                                            "01",
                                            "1.",
                                            ".5",
                                            "+1",
                                            "1e",
                                            "0x1f",
                                            "--1",
                                            "true",
                                            "false",
                                            "null",
                                            "TRUE",
                                            "None",
                                            "[]",
                                            "{}",
                                            "[null]",
                                            "{\"a\":1,\"a\":2}",
                                            "{\"type\":\"rope\"}",
                                            "{\"type\":3}",
                                            "\"\"",
                                            "\"type\"",
                                            "\"a\\u0000b\"",
                                            "\"\\ud83d\\ude00\"",
                                            "\"\\ud83d\"",
                                            "\"\\ude00\"",
                                            "\"\\ud83d\\u0041\"",
                                            "\"\\x\"",
                                            "\"\\u12\"",
                                            "\"\\u001b[2J\"",
                                            "\"\x7F\"",
                                            "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"",
                                            "\"\xFF\"",
                                            "\"\xC0\x80\"",
                                            "\"\xED\xA0\x80\"",
                                            "\"\xF4\x90\x80\x80\"",
                                            "\"a",
                                            "'a'",
                                            "// c",
                                            "/* c */",
                                            "# c",
                                            "\xEF\xBB\xBF",
                                            "\"\t\"",
                                            "\"\n\"",
                                            ",",
                                            ":",
                                            ",,",
                                            "]",
                                            "}",
                                            "\"a.b[0].c\"",
                                            "\"[0]\"",
                                            "\"a[99999999]\""};
  return all;
}

/// A place where a scalar of a JSON text begins, and where it ends; both the text's size where none was found.
std::pair<std::size_t, std::size_t> scalar(const std::string& text, Random& random) {
  if (text.empty()) return {0, 0};
  const auto from = below(random, text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = (from + i) % text.size();
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '"') {
      auto end = at + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      return {at, std::min(end + 1, text.size())};
    }
    if (std::isdigit(c) || c == '-' || std::isalpha(c)) {
      auto end = at + 1;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '.' ||
                                   text[end] == '+' || text[end] == '-'))
        ++end;
      return {at, end};
    }
  }
  return {text.size(), text.size()};
}

std::string repeated(const std::string& piece, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += piece;
  return all;
}

}  // namespace

std::string mutate_bytes(const std::string& bytes, const std::string& alphabet, Random& random) {
  auto text = bytes;
  const auto at = below(random, text.size() + 1);
  switch (random.below(6)) {
    case 0:
      text.erase(std::min(at, text.size()), 1 + below(random, 8));
      break;
    case 1:
      text.insert(at, 1, alphabet[below(random, alphabet.size())]);
      break;
    case 2:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
      break;
    case 3:
      if (at < text.size()) text[at] = alphabet[below(random, alphabet.size())];
      break;
    case 4:
      text.insert(at, bytes.substr(below(random, bytes.size()), 1 + below(random, 40)));
      break;
    default:
      text.resize(at);
      break;
  }
  return text;
}

std::string mutate_json(const std::string& json, const std::vector<std::string>& words, Random& random) {
  auto text = json;
  switch (random.below(10)) {
    case 0:
    case 1: {  // another value or key
      const auto [begin, end] = scalar(text, random);
      text.replace(begin, end - begin, random.below(3) == 0 ? one_of(odd_values(), random) : one_of(words, random));
      break;
    }
    case 2: {  // the same key again, or an item
      const auto [begin, end] = scalar(text, random);
      text.insert(begin, text.substr(begin, end - begin) + (random.below(2) ? ":" + one_of(words, random) : "") + ",");
      break;
    }
    case 3: {  // one more member
      const auto open = text.find('{', below(random, text.size()));
      if (open != std::string::npos)
        text.insert(open + 1,
                    one_of(words, random) + ":" + one_of(random.below(2) ? words : odd_values(), random) + ",");
      break;
    }
    case 4: {  // one more item
      const auto open = text.find('[', below(random, text.size()));
      if (open != std::string::npos)
        text.insert(open + 1, one_of(random.below(2) ? words : odd_values(), random) + ",");
      break;
    }
    case 5: {  // deep
      const auto [begin, end] = scalar(text, random);
      const bool list = random.below(2);
      const auto depth = random.below(4) == 0 ? below(random, 3000) : below(random, 110);
      text.insert(end, repeated(list ? "]" : "}", depth));
      text.insert(begin, repeated(list ? "[" : "{\"a\":", depth));
      break;
    }
    case 6: {  // long
      const auto [begin, end] = scalar(text, random);
      const std::size_t times = std::size_t{1} << random.below(12);
      if (end > begin + 1) text.insert(begin + 1, repeated(text.substr(begin + 1, 1 + below(random, 3)), times));
      break;
    }
    case 7:  // a piece moved elsewhere
      text.insert(below(random, text.size() + 1), text.substr(below(random, text.size()), 1 + below(random, 60)));
      break;
    default:
      text = mutate_bytes(text, characters("{}[]:,\"\\ \n\r\t0123456789.eE+-tfnu/*#\xC3\xA4\xFF\0"), random);
      break;
  }
  return text;
}

}  // namespace headlab::fuzz
