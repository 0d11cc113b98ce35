#include "src/spec/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "modules/base/error.h"
#include "modules/base/nearest.h"

namespace headlab {

using Json = nlohmann::ordered_json;

class ExpressionParser {
 public:
  explicit ExpressionParser(const std::string& text) : text_(text) { out_.text_ = text; }

  Expression parse() {
    sum(0);
    space();
    if (at_ < text_.size()) fail("expected an operator or the end");
    return std::move(out_);
  }

 private:
  using Op = Expression::Op;
  static constexpr int deepest = 100;
  static constexpr std::size_t longest_name = 1000;  // looking it up takes the square of its parts

  [[noreturn]] void fail(const std::string& message) const {
    std::size_t end = std::min(at_ + 20, text_.size());
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80)
      ++end;  // never within a character
    std::string found = at_ < text_.size() ? in_quotes(text_.substr(at_, end - at_)) : "the end";
    throw UsageError("syntax error at character " + std::to_string(at_ + 1) + ": " + message + ", got " + found);
  }

  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  void emit(Op op, double number = 0, std::string name = "", std::size_t count = 0) {
    out_.code_.push_back({op, number, std::move(name), count});
  }

  void sum(int depth) {
    product(depth);
    while (true) {
      if (take('+')) {
        product(depth);
        emit(Op::add);
      } else if (take('-')) {
        product(depth);
        emit(Op::subtract);
      } else {
        return;
      }
    }
  }

  void product(int depth) {
    signed_value(depth);
    while (true) {
      if (take('*')) {
        signed_value(depth);
        emit(Op::multiply);
      } else if (take('/')) {
        signed_value(depth);
        emit(Op::divide);
      } else {
        return;
      }
    }
  }

  void signed_value(int depth) {
    bool negative = false;
    while (true) {
      if (take('-')) {
        negative = !negative;
      } else if (!take('+')) {
        break;
      }
    }
    value(depth);
    if (negative) emit(Op::negate);
  }

  void value(int depth) {
    space();
    if (depth > deepest) fail("nested deeper than " + std::to_string(deepest));
    if (take('(')) {
      sum(depth + 1);
      if (!take(')')) fail("expected an operator or \")\"");
    } else if (digit(peek()) || peek() == '.') {
      number();
    } else if (letter(peek())) {
      name(depth);
    } else {
      fail("expected a number, a name or \"(\"");
    }
  }

  void number() {
    double value = 0;
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("expected a number that a double can hold");
    if (error != std::errc()) fail("expected a number");
    std::size_t length = static_cast<std::size_t>(end - begin);
    if (at_ + length < text_.size() && (letter(*end) || *end == '.')) fail("expected a number, a name or \"(\"");
    at_ += length;
    emit(Op::number, value);
  }

  void name(int depth) {
    std::size_t begin = at_;
    auto part = [&] {
      while (letter(peek()) || digit(peek())) ++at_;
    };
    part();
    while (peek() == '.') {
      ++at_;
      if (!letter(peek()) && !digit(peek())) fail("expected a name after \".\"");
      part();
    }
    if (at_ - begin > longest_name) {
      throw UsageError("syntax error at character " + std::to_string(begin + 1) + ": expected a name of at most " +
                       std::to_string(longest_name) + " characters, got " + std::to_string(at_ - begin));
    }
    std::string name = text_.substr(begin, at_ - begin);
    space();
    if (peek() == '(') {
      function(name, begin, depth);
    } else {
      emit(Op::name, 0, name);
    }
  }

  void function(const std::string& name, std::size_t begin, int depth) {
    static const std::map<std::string, Op> functions = {
        {"abs", Op::abs}, {"max", Op::max}, {"mean", Op::mean}, {"min", Op::min}};
    auto known = functions.find(name);
    if (known == functions.end()) {
      std::vector<std::string> names;
      for (const auto& [function, op] : functions) names.push_back(function);
      throw UsageError("syntax error at character " + std::to_string(begin + 1) + ": " +
                       unknown_name("function", name, names));
    }
    take('(');
    std::size_t count = 0;
    do {
      sum(depth + 1);
      ++count;
    } while (take(','));
    if (!take(')')) fail("expected an operator, \",\" or \")\"");
    if (known->second == Op::abs && count != 1) {
      throw UsageError("syntax error at character " + std::to_string(begin + 1) + ": abs takes one value, got " +
                       std::to_string(count));
    }
    emit(known->second, 0, name, count);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  Expression out_;
};

namespace {

/// A number, or the numbers of a list; what it is called stands in the messages about it.
struct Value {
  std::vector<double> numbers;
  bool list = false;
  std::string name;
};

void collect(const Json& value, const std::string& name, Value& out) {
  if (value.is_array()) {
    out.list = true;
    for (const Json& item : value) collect(item, name, out);
  } else if (value.is_number()) {
    out.numbers.push_back(value.get<double>());
  } else {
    std::string got = value.is_object() ? "an object" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    throw Error(in_quotes(name) + " among the results is " + got + ", not a number");
  }
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    std::size_t dot = name.find('.', begin);
    parts.push_back(name.substr(begin, dot - begin));
    if (dot == std::string::npos) return parts;
    begin = dot + 1;
  }
}

/// Follows the parts from `first` on; false where there is nothing. Longer keys are tried first: a key may hold dots.
bool follow(const Json& at, const std::vector<std::string>& parts, std::size_t first, const std::string& name,
            Value& out) {
  if (first == parts.size()) {
    collect(at, name, out);
    return true;
  }
  if (at.is_array()) {
    const std::string& part = parts[first];
    std::size_t index = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error == std::errc() && end == part.data() + part.size()) {
      return index < at.size() && follow(at[index], parts, first + 1, name, out);
    }
    out.list = true;
    for (const Json& item : at) {
      if (!follow(item, parts, first, name, out)) return false;
    }
    return !at.empty();
  }
  if (!at.is_object()) return false;
  std::string key;
  std::vector<std::string> keys;
  for (std::size_t i = first; i < parts.size(); ++i) {
    key += (i == first ? "" : ".") + parts[i];
    keys.push_back(key);
  }
  for (std::size_t taken = keys.size(); taken > 0; --taken) {
    auto found = at.find(keys[taken - 1]);
    if (found != at.end() && follow(*found, parts, first + taken, name, out)) return true;
  }
  return false;
}

/// The names of all numbers and lists.
void all_names(const Json& at, const std::string& path, std::vector<std::string>& out) {
  constexpr std::size_t most = 10'000;
  if (out.size() >= most) return;
  if (at.is_object()) {
    for (const auto& [key, value] : at.items()) all_names(value, path.empty() ? key : path + "." + key, out);
  } else if (at.is_array() && !at.empty() && at[0].is_object()) {
    all_names(at[0], path, out);
  } else if (at.is_array() || at.is_number()) {
    out.push_back(path);
  }
}

Value look_up(const Json& results, const std::string& name) {
  Value value;
  value.name = name;
  if (follow(results, parts_of(name), 0, name, value)) return value;
  std::vector<std::string> names;
  all_names(results, "", names);
  std::string nearest = " (nearest: " + listed(nearest_names(name, names, 5)) + ")";
  throw Error(in_quotes(name) + " is not among the results" + did_you_mean(name, names) +
              (names.empty() ? "; there are no results" : nearest));
}

double single(const Value& value) {
  if (value.list) {
    throw Error(in_quotes(value.name) + " is a list of " + std::to_string(value.numbers.size()) +
                "; take its mean(), min() or max()");
  }
  return value.numbers[0];
}

}  // namespace

Expression Expression::parse(const std::string& text) { return ExpressionParser(text).parse(); }

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  for (const Code& code : code_) {
    if (code.op == Op::name && std::find(names.begin(), names.end(), code.name) == names.end())
      names.push_back(code.name);
  }
  return names;
}

double Expression::evaluate(const Json& results) const {
  std::vector<Value> stack;
  auto pop = [&] {
    Value value = std::move(stack.back());
    stack.pop_back();
    return value;
  };
  auto push = [&](double number) { stack.push_back({{number}, false, ""}); };
  auto binary = [&](auto operation) {
    double right = single(pop()), left = single(pop());
    push(operation(left, right));
  };
  auto over_all = [&](const Code& code, auto operation) {
    std::vector<double> numbers;
    for (std::size_t i = stack.size() - code.count; i < stack.size(); ++i) {
      numbers.insert(numbers.end(), stack[i].numbers.begin(), stack[i].numbers.end());
    }
    stack.resize(stack.size() - code.count);
    if (numbers.empty()) throw Error(code.name + "() of an empty list");
    push(operation(numbers));
  };
  for (const Code& code : code_) {
    switch (code.op) {
      case Op::number:
        push(code.number);
        break;
      case Op::name:
        stack.push_back(look_up(results, code.name));
        break;
      case Op::negate:
        push(-single(pop()));
        break;
      case Op::abs:
        push(std::abs(single(pop())));
        break;
      case Op::add:
        binary([](double a, double b) { return a + b; });
        break;
      case Op::subtract:
        binary([](double a, double b) { return a - b; });
        break;
      case Op::multiply:
        binary([](double a, double b) { return a * b; });
        break;
      case Op::divide:
        binary([&](double a, double b) {
          if (b == 0) throw Error("division by zero in " + in_quotes(text_));
          return a / b;
        });
        break;
      case Op::min:
        over_all(code, [](const auto& v) { return *std::min_element(v.begin(), v.end()); });
        break;
      case Op::max:
        over_all(code, [](const auto& v) { return *std::max_element(v.begin(), v.end()); });
        break;
      case Op::mean:
        over_all(code, [](const auto& v) {
          return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
        });
        break;
    }
  }
  return single(stack.back());
}

}  // namespace headlab
