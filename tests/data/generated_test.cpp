// Each exercise against a checker of its own, which reads the symbols as a person would.
#include "src/data/generated/generate.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "modules/base/error.h"
#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

using Texts = std::vector<std::string>;

GeneratedOptions options_of(const std::string& json) {
  GeneratedOptions options;
  options.train = 300;
  options.valid = options.test = 40;
  read_or_throw(Document::parse_text(json, "x.json"), options);
  return options;
}

std::string mistake_in(const std::string& json) {
  try {
    options_of(json);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

// An example in symbols; "" where nothing is asked.
struct Shown {
  Texts source, read, answer;
  // Of a sequence: all symbols that follow bos, and which of them are asked.
  Texts text() const {
    Texts all(read.begin() + 1, read.end());
    all.push_back(answer.back());
    return all;
  }
  Texts asked() const {
    Texts said;
    std::copy_if(answer.begin(), answer.end(), std::back_inserter(said),
                 [](const auto& symbol) { return !symbol.empty(); });
    return said;
  }
};

Texts shown(const std::vector<int32_t>& ids, const Symbols& symbols) {
  Texts texts;
  for (const auto id : ids) texts.push_back(id == GeneratedExample::none ? "" : symbols.name(id));
  return texts;
}

// Draws an exercise and calls `check` with each example of each part.
void each_example(const std::string& exercise, const std::function<void(const Shown&, bool test)>& check) {
  const auto data = generate(options_of(R"({"exercise": )" + exercise + R"(, "train": 150, "valid": 20, "test": 20})"));
  for (const auto& [name, part] : data.parts)
    for (const auto& example : part) {
      const Shown one{shown(example.source, data.symbols), shown(example.read, data.symbols),
                      data.form == Form::label ? Texts{data.classes.at(static_cast<std::size_t>(example.answer.at(0)))}
                                               : shown(example.answer, data.symbols)};
      INFO(exercise << " " << name);
      if (data.form == Form::sequence) {
        REQUIRE(one.read.size() == one.answer.size());
        REQUIRE(one.read.front() == "<bos>");
        for (std::size_t t = 0; t + 1 < one.read.size(); ++t)
          if (!one.answer[t].empty()) REQUIRE(one.answer[t] == one.read[t + 1]);
      }
      check(one, name == "test");
    }
}

int64_t number_of(const std::string& symbol, char letter) {
  REQUIRE(symbol.at(0) == letter);
  return std::stoll(symbol.substr(1));
}

}  // namespace

TEST_CASE("copy, reverse and sort give the source in the order that they say", "[generated]") {
  const std::string size = R"(, "vocabulary": 12, "length": {"min": 2, "max": 6, "test_min": 9, "test_max": 10}})";
  each_example(R"({"type": "copy")" + size, [](const Shown& one, bool test) {
    CHECK(one.read == one.source);
    CHECK(
        (test ? one.source.size() == 9 || one.source.size() == 10 : one.source.size() >= 2 && one.source.size() <= 6));
  });
  each_example(R"({"type": "reverse")" + size,
               [](const Shown& one, bool) { CHECK(one.read == Texts(one.source.rbegin(), one.source.rend())); });
  each_example(R"({"type": "sort")" + size, [](const Shown& one, bool) {
    std::multiset<int64_t> numbers;
    for (const auto& symbol : one.source) numbers.insert(number_of(symbol, 's'));
    std::size_t i = 0;
    for (const auto number : numbers) CHECK(one.read.at(i++) == "s" + std::to_string(number));
    CHECK(i == one.read.size());
  });
}

TEST_CASE("selective copy gives what is not blank, and a subset some of the source", "[generated]") {
  each_example(R"({"type": "selective_copy", "marked": 3, "length": {"min": 6, "max": 9}})",
               [](const Shown& one, bool) {
                 Texts marked;
                 for (const auto& symbol : one.source)
                   if (symbol != "_") marked.push_back(symbol);
                 CHECK(marked.size() == 3);
                 CHECK(one.read == marked);
               });
  for (const std::string order : {"source", "random"})
    each_example(R"({"type": "subset", "order": ")" + order + R"(", "length": {"min": 6, "max": 8}})",
                 [&](const Shown& one, bool) {
                   CHECK(std::set<std::string>(one.source.begin(), one.source.end()).size() == one.source.size());
                   CHECK(one.read.size() >= 2);
                   CHECK(one.read.size() <= 5);
                   auto from = one.source.begin();
                   std::set<std::string> once;
                   for (const auto& symbol : one.read) {
                     const auto found =
                         std::find(order == "source" ? from : one.source.begin(), one.source.end(), symbol);
                     REQUIRE(found != one.source.end());
                     if (order == "source") from = found + 1;
                     CHECK(once.insert(symbol).second);
                   }
                 });
}

TEST_CASE("a lexicon translates each word of a language alike, in the order of that language", "[generated]") {
  std::map<std::string, std::string> translation;
  std::map<char, std::set<std::string>> of_language;
  each_example(R"({"type": "lexicon", "words": 6, "orders": ["swap_even", "reverse", "keep"]})",
               [&](const Shown& one, bool) {
                 const auto language = one.source.at(0)[0];
                 Texts ordered = one.source;
                 if (language == 'b') ordered.assign(one.source.rbegin(), one.source.rend());
                 if (language == 'a') {
                   ordered.clear();
                   for (std::size_t i = 0; i < one.source.size();) {
                     const bool swap = number_of(one.source[i], 'a') % 2 == 0 && i + 1 < one.source.size();
                     if (swap) ordered.push_back(one.source[i + 1]);
                     ordered.push_back(one.source[i]);
                     i += swap ? 2 : 1;
                   }
                 }
                 REQUIRE(one.read.size() == one.source.size());
                 for (std::size_t i = 0; i < ordered.size(); ++i) {
                   CHECK(ordered[i][0] == language);
                   CHECK(translation.emplace(ordered[i], one.read[i]).first->second == one.read[i]);
                   of_language[language].insert(one.read[i]);
                 }
               });
  CHECK(translation.size() == 18);
  for (const auto& [language, words] : of_language)
    CHECK(words.size() == 6);  // a permutation: no two words share a translation
}

TEST_CASE("induction asks what followed before", "[generated]") {
  each_example(R"({"type": "induction", "vocabulary": 9, "length": {"min": 3, "max": 7}})", [](const Shown& one, bool) {
    const auto text = one.text();
    const auto n = text.size() / 2;
    REQUIRE(text.size() == 2 * n);
    CHECK(Texts(text.begin(), text.begin() + static_cast<int64_t>(n)) ==
          Texts(text.begin() + static_cast<int64_t>(n), text.end()));
    CHECK(one.asked().size() == n - 1);
  });
  each_example(R"({"type": "induction", "vocabulary": 9, "kind": "query", "length": {"min": 3, "max": 7}})",
               [](const Shown& one, bool) {
                 const auto text = one.text();
                 const auto again = text.at(text.size() - 2);
                 CHECK(std::count(text.begin(), text.end() - 2, again) == 1);
                 CHECK(*(std::find(text.begin(), text.end(), again) + 1) == text.back());
                 CHECK(one.asked() == Texts{text.back()});
               });
}

TEST_CASE("recall, needle, facts and passages ask what stood before", "[generated]") {
  each_example(
      R"({"type": "recall", "gap": 4, "queries": 2, "pairs": {"min": 3, "max": 5, "test_min": 7, "test_max": 7}})",
      [](const Shown& one, bool test) {
        const auto text = one.text();
        const auto gap = static_cast<std::size_t>(std::find(text.begin(), text.end(), "~") - text.begin());
        std::map<std::string, std::string> value;
        for (std::size_t i = 0; i < gap; i += 2) CHECK(value.emplace(text[i], text[i + 1]).second);
        if (test) CHECK(value.size() == 7);
        CHECK(std::count(text.begin(), text.end(), "~") == 4);
        REQUIRE(text.size() == gap + 4 + 2 * 2);
        for (auto i = gap + 4; i < text.size(); i += 2) CHECK(value.at(text[i]) == text[i + 1]);
        CHECK(one.asked() == Texts{text[gap + 5], text[gap + 7]});
      });
  each_example(R"({"type": "needle", "distractors": 2, "length": {"min": 5, "max": 9}})", [](const Shown& one, bool) {
    const auto text = one.text();
    std::map<std::string, std::string> value;
    int64_t hay = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      hay += text[i][0] == 'h';
      if (text[i] == "!") CHECK(value.emplace(text.at(i + 1), text.at(i + 2)).second);
    }
    CHECK(value.size() == 3);
    CHECK(hay >= 5);
    CHECK(text.at(text.size() - 3) == "?");
    CHECK(value.at(text.at(text.size() - 2)) == text.back());
    CHECK(one.asked() == Texts{text.back()});
  });
  each_example(R"({"type": "facts", "queries": 2})", [](const Shown& one, bool) {
    const auto text = one.text();
    std::map<std::pair<std::string, std::string>, std::string> object;
    std::size_t i = 0;
    for (; text.at(i) != "?"; i += 4) {
      CHECK(text.at(i + 3) == ".");
      CHECK(object.emplace(std::pair(text[i], text[i + 1]), text[i + 2]).second);
    }
    REQUIRE(text.size() == i + 1 + 2 * 3);
    for (++i; i < text.size(); i += 3) CHECK(object.at({text[i], text[i + 1]}) == text[i + 2]);
    CHECK(one.asked().size() == 2);
  });
  bool shared_key = false;
  each_example(R"({"type": "passages", "passages": {"min": 3, "max": 4}})", [&](const Shown& one, bool) {
    const auto text = one.text();
    std::map<std::pair<std::string, std::string>, std::string> value;
    std::set<std::string> keys;
    std::string topic;
    std::size_t i = 0;
    while (text.at(i) != "?") {
      if (text[i] == "#") {
        topic = text[i + 1];
      } else {
        CHECK(value.emplace(std::pair(topic, text[i]), text[i + 1]).second);
        shared_key = shared_key || !keys.insert(text[i]).second;
      }
      i += 2;
    }
    REQUIRE(text.size() == i + 4);
    CHECK(value.at({text[i + 1], text[i + 2]}) == text[i + 3]);
    CHECK(one.asked() == Texts{text.back()});
  });
  CHECK(shared_key);
}

TEST_CASE("offsets ask for the symbols some places away, by each of their rules", "[generated]") {
  const auto at = [](const Shown& one, int64_t t) { return number_of(one.read.at(static_cast<std::size_t>(t)), 's'); };
  const std::string some = R"({"type": "offsets", "vocabulary": 5, "length": {"min": 8, "max": 9})";
  each_example(some + R"(, "offsets": [3]})", [&](const Shown& one, bool) {
    for (std::size_t t = 0; t < one.read.size(); ++t) CHECK(one.answer[t] == (t < 3 ? "" : one.read[t - 3]));
  });
  each_example(some + R"(, "offsets": [1, 3]})", [&](const Shown& one, bool) {
    for (std::size_t t = 0; t < one.read.size(); ++t)
      CHECK(one.answer[t] == (t < 3 ? "" : one.read[t - 1] + "," + one.read[t - 3]));
  });
  each_example(some + R"(, "offsets": [1, -2], "rule": "sum"})", [&](const Shown& one, bool) {
    const auto n = static_cast<int64_t>(one.read.size());
    for (int64_t t = 0; t < n; ++t) {
      const bool inside = t >= 1 && t + 2 < n;
      CHECK(one.answer[static_cast<std::size_t>(t)] ==
            (inside ? "s" + std::to_string((at(one, t - 1) + at(one, t + 2)) % 5) : ""));
    }
  });
  each_example(some + R"(, "offsets": [1, 3], "rule": "symbol"})", [&](const Shown& one, bool) {
    for (std::size_t t = 0; t < one.read.size(); ++t) {
      const std::size_t back = at(one, static_cast<int64_t>(t)) % 2 == 0 ? 1 : 3;
      CHECK(one.answer[t] == (t < back ? "" : one.read[t - back]));
    }
  });
  each_example(some + R"(, "offsets": [2, -1], "rule": "flag"})", [&](const Shown& one, bool) {
    const auto back = number_of(one.read.front(), 'f') == 0 ? 2 : -1;
    const auto n = static_cast<int64_t>(one.read.size());
    CHECK(one.answer.front().empty());
    for (int64_t t = 1; t < n; ++t) {
      const bool inside = t - back >= 1 && t - back < n;
      CHECK(one.answer[static_cast<std::size_t>(t)] == (inside ? one.read[static_cast<std::size_t>(t - back)] : ""));
    }
  });
}

TEST_CASE("match asks for values of keys that stood before, and at pairs for the key just before", "[generated]") {
  for (const std::string asked : {"both", "value", "before"}) {
    int64_t pairs = 0, symbols = 0;
    each_example(
        R"({"type": "match", "keys": 5, "values": 3, "length": {"min": 9, "max": 12}, "questions": 0.3, "asked": ")" +
            asked + R"("})",
        [&](const Shown& one, bool) {
          std::map<std::string, std::string> value_of;
          std::string before;
          for (std::size_t t = 0; t < one.read.size(); ++t) {
            const auto& symbol = one.read[t];
            const auto key = symbol.substr(0, symbol.find_first_of("=?"));
            const bool is_pair = symbol.find('=') != std::string::npos;
            if (is_pair) {
              const auto value = symbol.substr(symbol.find('=') + 1);
              CHECK(value_of.emplace(key, value).first->second == value);
              CHECK(one.answer[t] == (asked == "value" ? "" : before));
            } else {
              REQUIRE(value_of.count(key) == 1);
              CHECK(one.answer[t] == (asked == "before" ? "" : value_of[key]));
            }
            before = key;
            pairs += is_pair;
            ++symbols;
          }
          CHECK(!one.asked().empty());
        });
    CHECK(static_cast<double>(pairs) / static_cast<double>(symbols) ==
          Approx(0.7 + 0.3 / 10.5).margin(0.06));  // the first is a pair
  }
  CHECK_THAT(
      mistake_in(R"({"exercise": {"type": "match", "length": {"min": 1, "max": 4}}})"),
      ContainsSubstring("exercise.length: expected at least 2 symbols, so that one stands before another; got 1"));
}

TEST_CASE("few-shot texts show one function each, of as many as there are", "[generated]") {
  std::set<std::map<std::string, std::string>> functions;
  each_example(R"({"type": "few_shot", "symbols": 4, "functions": 3, "shots": {"min": 3, "max": 3}})",
               [&](const Shown& one, bool) {
                 const auto text = one.text();
                 REQUIRE(text.size() == 4 * 4 - 1);
                 std::map<std::string, std::string> function;
                 std::set<std::string> outputs;
                 for (std::size_t i = 0; i < text.size(); i += 4) {
                   CHECK(text[i + 1] == ":");
                   CHECK(function.emplace(text[i], text[i + 2]).second);
                   CHECK(outputs.insert(text[i + 2]).second);
                 }
                 functions.insert(function);  // all four symbols: the whole of it
                 CHECK(one.asked() == Texts{text.back()});
               });
  CHECK(functions.size() == 3);
}

TEST_CASE("successors are the next terms, and lists end or begin again", "[generated]") {
  bool around = false;
  each_example(R"({"type": "successor", "runs": 3})", [&](const Shown& one, bool) {
    const auto text = one.text();
    std::size_t asked = 0;
    for (std::size_t i = 0; i + 2 < text.size(); ++i) {
      if (text[i + 1] != ",") continue;
      const auto list = text[i][0];
      const auto now = number_of(text[i], list), next = number_of(text[i + 2], list);
      CHECK(next == (list == 'm' ? (now + 1) % 12 : now + 1));
      around = around || next == 0;
      CHECK(next < (list == 'n' ? 30 : list == 'l' ? 26 : 12));
      CHECK(one.answer[i + 2] == text[i + 2]);
      ++asked;
    }
    CHECK(std::count(text.begin(), text.end(), ";") == 2);
    CHECK(one.asked().size() == asked);
  });
  CHECK(around);
}

TEST_CASE("the verb agrees with the first noun, whatever stands between", "[generated]") {
  const auto plural = [](const std::string& noun) { return noun.back() == 's'; };
  int64_t opposed = 0;
  each_example(R"({"type": "agreement", "phrases": {"min": 1, "max": 3, "test_min": 4, "test_max": 4}})",
               [&](const Shown& one, bool test) {
                 const auto text = one.text();
                 CHECK(one.asked() == Texts{text.back()});
                 CHECK(text.back() == (plural(text.at(1)) ? "are" : "is"));
                 const auto nouns = std::count(text.begin(), text.end(), "the");
                 CHECK((test ? nouns == 4 : nouns <= 3));
                 opposed += plural(text.at(1)) != plural(text.at(text.size() - 2));
               });
  CHECK(opposed > 20);
  each_example(R"({"type": "agreement", "attractors": "opposite"})", [&](const Shown& one, bool) {
    const auto text = one.text();
    for (std::size_t i = 4; i < text.size(); i += 3) CHECK(plural(text[i]) != plural(text[1]));
  });
}

TEST_CASE("plausible, dialogue and refuse answer by their rules", "[generated]") {
  const auto class_of = [](const std::string& word) { return word.substr(1, word.find('.') - 1); };
  each_example(R"({"type": "plausible"})", [&](const Shown& one, bool) {
    const auto text = one.text();
    REQUIRE(text.size() == 4);
    CHECK(class_of(text[0]) != class_of(text[1]));
    CHECK(text[3] == (class_of(text[0]) == class_of(text[2]) ? text[0] : text[1]));
    CHECK(class_of(text[3]) == class_of(text[2]));
  });
  int64_t doubts = 0, all = 0;
  each_example(R"({"type": "dialogue"})", [&](const Shown& one, bool) {
    const auto text = one.text();
    REQUIRE(text.size() == 6);
    CHECK(text[1] != text[3]);
    CHECK(text[4] == "?");
    CHECK(text[5] == (text[2] == "DOUBT" ? text[3] : text[1]));
    doubts += text[2] == "DOUBT";
    ++all;
  });
  CHECK(std::abs(doubts - all / 2) < 35);  // 190 fair draws: 5 standard deviations are 34.5
  int64_t refused = 0;
  each_example(R"({"type": "refuse"})", [&](const Shown& one, bool) {
    const auto text = one.text();
    const auto question = std::find(text.begin(), text.end(), "?");
    const bool refuse = std::any_of(text.begin(), question, [](const auto& symbol) { return symbol[0] == 'f'; });
    CHECK(one.asked() == (refuse ? Texts{"REFUSE"} : Texts(text.begin(), question)));
    CHECK(Texts(question + 1, text.end()) == one.asked());
    refused += refuse;
  });
  CHECK(std::abs(refused - 95) < 35);
}

TEST_CASE("Dyck words are well nested within the depth, and every closing bracket is asked", "[generated]") {
  std::size_t deepest = 0;
  each_example(R"({"type": "dyck", "types": 3, "max_depth": 3})", [&](const Shown& one, bool) {
    std::vector<std::string> stack;
    const auto text = one.text();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool opens = text[i][0] == '(';
      CHECK(one.answer[i].empty() == opens);
      if (opens) {
        stack.push_back(text[i].substr(1));
        deepest = std::max(deepest, stack.size());
      } else {
        REQUIRE(!stack.empty());
        CHECK(stack.back() == text[i].substr(1));
        stack.pop_back();
      }
    }
    CHECK(stack.empty());
  });
  CHECK(deepest == 3);
}

TEST_CASE("a Markov chain's symbols have so many successors, and all but the first symbol are asked", "[generated]") {
  std::map<std::string, std::map<std::string, int64_t>> followers;
  each_example(R"({"type": "markov", "vocabulary": 5, "branches": 3, "length": {"min": 20, "max": 20}})",
               [&](const Shown& one, bool) {
                 const auto text = one.text();
                 REQUIRE(text.size() == 20);
                 CHECK(one.asked().size() == 19);
                 for (std::size_t i = 1; i < text.size(); ++i) ++followers[text[i - 1]][text[i]];
               });
  CHECK(followers.size() == 5);
  for (const auto& [symbol, counts] : followers) CHECK(counts.size() == 3);
}

TEST_CASE("sentiment is the sign of good less bad words, turned by negators; the rarest symbol has the class",
          "[generated]") {
  int64_t positive = 0, all = 0;
  each_example(R"({"type": "sentiment"})", [&](const Shown& one, bool) {
    int64_t sum = 0;
    for (std::size_t i = 0; i < one.read.size(); ++i) {
      const auto& word = one.read[i];
      const int64_t value = word.rfind("good", 0) == 0 ? 1 : word.rfind("bad", 0) == 0 ? -1 : 0;
      sum += i > 0 && one.read[i - 1].rfind("not", 0) == 0 ? -value : value;
    }
    CHECK(sum != 0);
    CHECK(one.answer == Texts{sum > 0 ? "positive" : "negative"});
    positive += sum > 0;
    ++all;
  });
  CHECK(std::abs(positive - all / 2) < 35);
  std::map<int64_t, std::string> class_of;
  each_example(R"({"type": "rarest", "vocabulary": 20})", [&](const Shown& one, bool) {
    int64_t rarest = -1;
    for (const auto& symbol : one.read) rarest = std::max(rarest, number_of(symbol, 's'));
    CHECK(class_of.emplace(rarest, one.answer.at(0)).first->second == one.answer.at(0));
  });
  std::set<std::string> classes;
  for (const auto& [symbol, its] : class_of) classes.insert(its);
  CHECK(classes.size() == 2);
  // The same symbols have the same classes where something else is asked, or they are drawn by another law.
  std::map<std::string, int64_t> times;
  each_example(
      R"({"type": "rarest", "vocabulary": 20, "law": "uniform", "asked": "most", "length": {"min": 6, "max": 6}})",
      [&](const Shown& one, bool) {
        int64_t ones = 0;
        for (const auto& symbol : one.read) {
          ++times[symbol];
          const auto its = class_of.find(number_of(symbol, 's'));
          if (its == class_of.end()) return;  // too common to have been the rarest of a text
          ones += its->second == "1";
        }
        CHECK(ones != 3);
        CHECK(one.answer == Texts{ones > 3 ? "1" : "0"});
      });
  int64_t all_symbols = 0;
  for (const auto& [symbol, count] : times) all_symbols += count;
  CHECK(times.at("s0") < all_symbols / 10);  // by Zipf's law it would be 28 %
  each_example(R"({"type": "rarest", "vocabulary": 20, "asked": "back", "back": 2})", [&](const Shown& one, bool) {
    const auto its = class_of.find(number_of(one.read.at(one.read.size() - 3), 's'));
    if (its != class_of.end()) CHECK(one.answer == Texts{its->second});
  });
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "rarest", "asked": "back", "back": 16}})"),
             ContainsSubstring("expected less than the shortest text (16), got 16"));
}

TEST_CASE("a mixture has examples of its parts in proportion, with symbols of their own or shared ones",
          "[generated]") {
  const std::string parts =
      R"("parts": [{"type": "offsets", "vocabulary": 4, "length": {"min": 6, "max": 6}}, {"type": "induction", "vocabulary": 6}])";
  int64_t first = 0, all = 0;
  const auto data = generate(options_of(R"({"exercise": {"type": "mixture", "weights": [3, 1], )" + parts + "}}"));
  for (const auto& example : data.parts.at("train")) {
    const auto text = shown(example.read, data.symbols);
    const bool offsets = text.front() != "<bos>";
    for (const auto& symbol : text)
      if (symbol != "<bos>") CHECK(symbol.rfind(offsets ? "1:s" : "2:s", 0) == 0);
    if (offsets)
      for (std::size_t t = 1; t < text.size(); ++t) CHECK(example.answer[t] == example.read[t - 1]);
    first += offsets;
    ++all;
  }
  CHECK(std::abs(first - 3 * all / 4) < 38);  // 300 draws of 3/4: 5 standard deviations are 37.5
  CHECK(data.symbols.size() == 4 + 4 + 6);
  // The test part may have other proportions, a part left out among them; the others keep theirs.
  const auto tested = generate(
      options_of(R"({"exercise": {"type": "mixture", "weights": [3, 1], "test_weights": [0, 2], )" + parts + "}}"));
  CHECK(tested.parts.at("valid") == data.parts.at("valid"));
  for (const auto& example : tested.parts.at("test")) CHECK(shown(example.read, tested.symbols).front() == "<bos>");
  CHECK(tested.parts.at("test").size() == 40);
  const auto& trained = tested.parts.at("train");
  CHECK(std::abs(
            std::count_if(trained.begin(), trained.end(),
                          [&](const auto& example) { return shown(example.read, tested.symbols).front() != "<bos>"; }) -
            225) < 38);
  CHECK(generate(options_of(R"({"exercise": {"type": "mixture", "shared": true, )" + parts + "}}")).symbols.size() ==
        4 + 6);
}

TEST_CASE(
    "the same options give the same examples, another seed gives others, and parts do not depend on each other's size",
    "[generated]") {
  const std::string exercise = R"({"exercise": "recall")";
  const auto one = generate(options_of(exercise + "}"));
  CHECK(generate(options_of(exercise + "}")).parts == one.parts);
  CHECK(generate(options_of(exercise + R"(, "seed": 2})")).parts.at("train") != one.parts.at("train"));
  const auto smaller = generate(options_of(exercise + R"(, "train": 50})"));
  CHECK(smaller.parts.at("valid") == one.parts.at("valid"));
  CHECK(smaller.parts.at("test") == one.parts.at("test"));
  CHECK(std::equal(smaller.parts.at("train").begin(), smaller.parts.at("train").end(), one.parts.at("train").begin()));
  // The draws are fixed: another order of them would change every experiment in silence. (SplitMix64 by hand, in
  // Python.)
  const auto data =
      generate(options_of(R"({"exercise": {"type": "copy", "vocabulary": 9, "length": {"min": 4, "max": 4}}})"));
  CHECK(shown(data.parts.at("train")[0].source, data.symbols) == Texts{"s3", "s4", "s7", "s5"});
  CHECK(shown(data.parts.at("train")[1].source, data.symbols) == Texts{"s8", "s3", "s3", "s6"});
}

TEST_CASE("paired recall asks the values of pairs that stood before, each pair one symbol", "[generated][paper-28]") {
  each_example(
      R"({"type": "paired_recall", "keys": 9, "values": 4, "queries": 3, "pairs": {"min": 4, "max": 6, "test_min": 8, "test_max": 8}})",
      [](const Shown& one, bool test) {
        REQUIRE(one.read.size() == one.answer.size());
        const auto pairs = one.read.size() - 3;
        CHECK((test ? pairs == 8 : pairs >= 4 && pairs <= 6));
        std::map<std::string, std::string> value_of;
        std::set<std::string> asked;
        for (std::size_t i = 0; i < one.read.size(); ++i) {
          if (i < pairs) {
            const auto equals = one.read[i].find('=');
            CHECK(value_of.emplace(one.read[i].substr(0, equals), one.read[i].substr(equals + 1)).second);
            CHECK(one.answer[i].empty());
          } else {
            CHECK(value_of.at(one.read[i]) == one.answer[i]);
            CHECK(asked.insert(one.read[i]).second);
          }
        }
      });
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "paired_recall", "keys": 9}})"),
             ContainsSubstring("exercise.pairs: expected at most keys (9)"));
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "paired_recall", "queries": 30}})"),
             ContainsSubstring("exercise.queries: expected at most the fewest pairs (24)"));
}

TEST_CASE("no example is in two parts, and none twice in valid or test", "[generated]") {
  // 4^3 + 4^4 sources of which 80 go to valid and test: chance alone would repeat many.
  const auto data =
      generate(options_of(R"({"exercise": {"type": "copy", "vocabulary": 4, "length": {"min": 3, "max": 4}}})"));
  std::set<std::vector<int32_t>> evaluated;
  for (const auto* name : {"valid", "test"})
    for (const auto& example : data.parts.at(name)) CHECK(evaluated.insert(example.source).second);
  CHECK(evaluated.size() == 80);
  for (const auto& example : data.parts.at("train")) CHECK(evaluated.count(example.source) == 0);
}

TEST_CASE("an exercise with too few examples says so, and options that contradict each other are mistakes",
          "[generated]") {
  CHECK_THROWS_WITH(
      generate(options_of(R"({"exercise": {"type": "copy", "vocabulary": 2, "length": {"min": 2, "max": 3}}})")),
      ContainsSubstring("exercise copy: expected 40 examples for test that other parts lack, found 12; ask for fewer"));
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "recall", "keys": 4}})"),
             ContainsSubstring("exercise.pairs: expected at most keys (4) pairs, since no key stands twice; got 6"));
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "copy", "length": {"min": 5, "max": 4}}})"),
             ContainsSubstring("exercise.length.min: expected at most max (4), got 5"));
  CHECK_THAT(
      mistake_in(R"({"exercise": {"type": "mixture", "parts": ["copy", "recall"]}})"),
      ContainsSubstring("exercise.parts[0]: expected an exercise that reads one text and answers within it, got copy"));
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "mixture", "parts": ["offsets", "recall"], "test_weights": [1]}})"),
             ContainsSubstring("exercise.test_weights: expected one for each of the 2 parts, got 1"));
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "mixture", "parts": ["offsets", "recall"], "test_weights": [0, 0]}})"),
             ContainsSubstring("exercise.test_weights: expected at least one above 0"));
  CHECK_THAT(mistake_in(R"({"exercise": {"type": "dyk"}})"), ContainsSubstring("did you mean \"dyck\"?"));
}

TEST_CASE("every exercise draws with its defaults, of the form that its options promise", "[generated]") {
  for (const auto& entry : generator_catalogue().entries) {
    if (entry.name == "mixture") continue;  // has no defaults
    INFO(entry.name);
    Choice choice(generator_catalogue, entry.name);
    const auto generator = generators().make(choice);
    CHECK(generator->form() == dynamic_cast<const GeneratorOptions&>(choice.options()).form());
    CHECK((generator->form() == Form::label) == !generator->classes().empty());
    const auto& names = generator->symbols().names();
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    Random random(1), again(1);
    for (const bool test : {false, true}) {
      const auto example = generator->draw(random, test);
      CHECK(example == generator->draw(again, test));
      for (const auto* ids : {&example.source, &example.read, &example.answer})
        for (const auto id : *ids)
          CHECK((id == GeneratedExample::none || (id >= 0 && id < generator->symbols().size())));
    }
  }
}

TEST_CASE("written exercises are JSON lines with the symbols", "[generated]") {
  Scratch scratch;
  write_generated(options_of(R"({"exercise": {"type": "dialogue"}, "train": 5, "valid": 2, "test": 3})"),
                  (scratch / "new").string());
  std::ifstream file(scratch / "new" / "train.jsonl");
  int64_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    CHECK(json.at("read").size() == 6);
    CHECK(json.at("read")[0] == "<bos>");
    CHECK(json.at("answer")[0].is_null());
    CHECK(json.at("answer")[5].get<std::string>()[0] == 'v');
  }
  CHECK(count == 5);
  std::ifstream about(scratch / "new" / "data.json");
  const auto json = nlohmann::json::parse(about);
  CHECK(json.at("exercise") == "dialogue");
  CHECK(json.at("test") == 3);
  CHECK(json.at("symbols")[4] == "DOUBT");
}
