// The JSON parser behind Document: a recursive descent that keeps the line and column of every key and value, which
// nlohmann/json 3.11 does not give.

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "modules/base/nearest.h"
#include "src/spec/document.h"
#include "src/spec/mistakes.h"

namespace headlab {

namespace {

constexpr int deepest = 100;

/// Bytes of the UTF-8 sequence at the beginning of `text`, 0 where it is malformed (overlong, surrogate, cut off).
std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    bool allowed = (first != 0xE0 || byte(1) >= 0xA0) && (first != 0xED || byte(1) < 0xA0);
    return follows(1) && follows(2) && allowed ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    bool allowed = (first != 0xF0 || byte(1) >= 0x90) && (first != 0xF4 || byte(1) < 0x90);
    return follows(1) && follows(2) && follows(3) && allowed ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, uint32_t code) {
  auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12), tail(6), tail(0);
  }
}

bool digit(int c) { return c >= '0' && c <= '9'; }
bool letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// A number's decimal digits, exactly: value = digits * 10^exponent.
struct Decimal {
  bool negative = false;
  std::string digits;  // without zeros at either end; empty for 0
  int64_t exponent = 0;
};

Decimal decimal(const std::string& text) {
  Decimal out;
  std::size_t i = 0;
  if (text[0] == '-') out.negative = true, ++i;
  for (bool fraction = false; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      fraction = true;
    } else {
      out.digits += text[i];
      if (fraction) --out.exponent;
    }
  }
  if (i < text.size()) {
    bool minus = text[++i] == '-';
    if (minus || text[i] == '+') ++i;
    int64_t power = 0;
    for (; i < text.size(); ++i) power = power > 100'000'000 ? power : power * 10 + (text[i] - '0');
    out.exponent += minus ? -power : power;
  }
  while (!out.digits.empty() && out.digits.back() == '0') out.digits.pop_back(), ++out.exponent;
  out.digits.erase(0, std::min(out.digits.find_first_not_of('0'), out.digits.size()));
  return out;
}

std::optional<int64_t> integer_of(const Decimal& number) {
  if (number.digits.empty()) return 0;
  if (number.exponent < 0 || number.exponent > 18 || number.digits.size() > 19) return std::nullopt;
  std::string digits = (number.negative ? "-" : "") + number.digits + std::string(number.exponent, '0');
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

class Parser {
 public:
  Parser(std::string_view text, Place start) : text_(text), start_(std::move(start)) {}

  Node parse() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    space();
    Node node = value(0);
    space();
    if (at_ < text_.size()) fail(here(), "expected the end of the text after the value, got " + found());
    return node;
  }

 private:
  [[noreturn]] void fail(const Place& place, const std::string& message) {
    throw SpecErrors({Mistake{place, start_.source->path, "syntax error: " + message}});
  }

  Place here() const {
    Place place = start_;
    if (start_.line != 0) place.line = line_, place.column = column_;
    return place;
  }

  int peek() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }

  void advance() {
    auto byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\n') {
      ++line_;
      column_ = 1;
    } else if ((byte & 0xC0) != 0x80) {
      ++column_;
    }
  }

  bool take(char c) {
    if (peek() != c) return false;
    advance();
    return true;
  }

  /// What stands here, for a message: the end, a word, or one character.
  std::string found() const {
    if (at_ >= text_.size()) return "the end of the text";
    std::size_t length = 0;
    while (at_ + length < text_.size() && letter(static_cast<unsigned char>(text_[at_ + length]))) ++length;
    if (length == 0) length = utf8_length(text_.substr(at_));
    if (length == 0) return "a byte that is not UTF-8";
    return text_[at_] == '"' ? "a string" : in_quotes(std::string(text_.substr(at_, length)));
  }

  void space() {
    while (at_ < text_.size()) {
      int c = peek();
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance();
      } else if (c == '#' || (c == '/' && at_ + 1 < text_.size() && (text_[at_ + 1] == '/' || text_[at_ + 1] == '*'))) {
        fail(here(), "comments are not allowed; delete it");
      } else {
        return;
      }
    }
  }

  Node value(int depth) {
    if (depth > deepest) fail(here(), "nested deeper than " + std::to_string(deepest));
    Node node;
    node.at = here();
    int c = peek();
    if (c == '{') {
      object(node, depth);
    } else if (c == '[') {
      list(node, depth);
    } else if (c == '"') {
      node.kind = Node::Kind::string;
      node.text = string();
    } else if (c == '-' || digit(c)) {
      number(node);
    } else if (letter(c)) {
      word(node);
    } else if (c == '\'') {
      fail(here(), "strings stand in double quotes");
    } else {
      fail(here(), "expected a value, got " + found());
    }
    return node;
  }

  void word(Node& node) {
    std::size_t end = at_;
    while (end < text_.size() && (letter(static_cast<unsigned char>(text_[end])) || digit(text_[end]))) ++end;
    std::string word(text_.substr(at_, end - at_));
    if (word == "true" || word == "false") {
      node.kind = Node::Kind::boolean;
      node.boolean = word == "true";
    } else if (word != "null") {
      std::string nearest = nearest_name(word, {"true", "false", "null"});
      fail(here(), "expected a value, got " + in_quotes(word) +
                       (nearest.empty() ? "; strings stand in double quotes" : "; did you mean " + nearest + "?"));
    }
    while (at_ < end) advance();
  }

  void number(Node& node) {
    Place start = here();
    std::size_t begin = at_;
    auto digits = [&](const char* after) {
      if (!digit(peek())) fail(here(), std::string("expected a digit after ") + after + ", got " + found());
      while (digit(peek())) advance();
    };
    bool minus = take('-');
    bool zero = peek() == '0';
    std::size_t whole = at_;
    digits(minus ? "\"-\"" : "");
    if (zero && at_ - whole > 1) fail(start, "a number does not begin with 0");
    if (take('.')) digits("\".\"");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits("the exponent's \"e\"");
    }
    if (letter(peek()) || peek() == '.') fail(here(), "expected the end of the number, got " + found());
    node.kind = Node::Kind::number;
    node.text = std::string(text_.substr(begin, at_ - begin));
    Decimal exact = decimal(node.text);
    node.integer = integer_of(exact);
    auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), node.number);
    if (error == std::errc::result_out_of_range) {
      if (exact.exponent + static_cast<int64_t>(exact.digits.size()) > 0) fail(start, "the number is too large");
      node.number = 0;  // nearer to 0 than any double
    }
    (void)end;
  }

  uint32_t hex4(const Place& start) {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      int c = peek();
      if (digit(c)) {
        code = code * 16 + static_cast<uint32_t>(c - '0');
      } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        code = code * 16 + static_cast<uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        fail(start, "\\u takes four hexadecimal digits");
      }
      advance();
    }
    return code;
  }

  void escape(std::string& out) {
    Place start = here();
    advance();
    int c = peek();
    static const std::unordered_map<int, char> simple = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'b', '\b'},
                                                         {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};
    auto known = simple.find(c);
    if (known != simple.end()) {
      out += known->second;
      advance();
      return;
    }
    if (!take('u')) fail(start, "unknown escape \\; for a backslash write \\\\");
    uint32_t code = hex4(start);
    bool high = code >= 0xD800 && code < 0xDC00;
    if (high && take('\\') && take('u')) {
      uint32_t low = hex4(start);
      if (low < 0xDC00 || low > 0xDFFF) fail(start, "half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xD800 && code <= 0xDFFF) {
      fail(start, "half of a surrogate pair");
    }
    append_utf8(out, code);
  }

  std::string string() {
    Place start = here();
    advance();
    std::string out;
    while (true) {
      int c = peek();
      if (c < 0 || c == '\n') fail(start, "the string is not closed on its line");
      if (c == '"') break;
      if (c == '\\') {
        escape(out);
      } else if (c < 0x20) {
        fail(here(), "a control character in a string; write \\t for a tab");
      } else {
        std::size_t length = utf8_length(text_.substr(at_));
        if (length == 0) fail(here(), "a byte that is not UTF-8");
        for (std::size_t i = 0; i < length; ++i) {
          out += text_[at_];
          advance();
        }
      }
    }
    advance();
    return out;
  }

  void list(Node& node, int depth) {
    node.kind = Node::Kind::list;
    advance();
    space();
    if (take(']')) return;
    while (true) {
      node.items.push_back(value(depth + 1));
      space();
      if (take(']')) return;
      if (at_ >= text_.size()) fail(node.at, "the list is not closed");
      Place comma = here();
      if (!take(',')) fail(here(), "expected \",\" or \"]\" after an item of a list, got " + found());
      space();
      if (peek() == ']') fail(comma, "a comma after the last item");
    }
  }

  void object(Node& node, int depth) {
    node.kind = Node::Kind::object;
    advance();
    space();
    if (take('}')) return;
    std::unordered_map<std::string, Place> known;
    while (true) {
      if (at_ >= text_.size()) fail(node.at, "the object is not closed");
      if (peek() != '"') fail(here(), "expected a key in double quotes, got " + found());
      Node::Member member;
      member.at = here();
      member.key = string();
      auto [first, fresh] = known.emplace(member.key, member.at);
      if (!fresh) member.first = first->second;
      space();
      if (!take(':')) fail(here(), "expected \":\" after the key " + in_quotes(member.key) + ", got " + found());
      space();
      member.value = value(depth + 1);
      std::string key = member.key;
      node.members.push_back(std::move(member));
      space();
      if (take('}')) return;
      if (at_ >= text_.size()) fail(node.at, "the object is not closed");
      Place comma = here();
      if (!take(',')) fail(here(), "expected \",\" or \"}\" after the value of " + in_quotes(key) + ", got " + found());
      space();
      if (peek() == '}') fail(comma, "a comma after the last value");
    }
  }

  std::string_view text_;
  Place start_;
  std::size_t at_ = 0;
  int64_t line_ = 1, column_ = 1;
};

}  // namespace

Document Document::parse_text(const std::string& text, const std::string& filename) {
  Document document;
  document.filename_ = filename;
  auto source = std::make_shared<const Place::Source>(Place::Source{filename, "", 0});
  document.root_ = Parser(text, {source, 1, 1}).parse();
  return document;
}

Node parse_value(const std::string& text, const Place& at) { return Parser(text, at).parse(); }

bool is_utf8(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    std::size_t length = utf8_length(rest);
    if (length == 0) return false;
    rest.remove_prefix(length);
  }
  return true;
}

}  // namespace headlab
