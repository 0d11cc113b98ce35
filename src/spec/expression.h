#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace headlab {

/// An arithmetic expression over results: numbers, names, + - * /, parentheses, and abs(x), min, max and mean of any
/// number of values and lists.
///
/// A name is a path into the results: "pruned.bleu", "ablate.enc.self.0.3.bleu". A part may be written without a letter
/// (0), and a key of the results may itself hold dots. A list on the way is gone through: where `random` is a list of
/// runs, random.bleu is the list of their BLEU, random.0.bleu that of the first.
class Expression {
 public:
  /// `text` is UTF-8, as all of a spec. Throws UsageError: `syntax error at character 13: expected ...`.
  static Expression parse(const std::string& text);

  /// Throws Error for a name that is not among the results (with the nearest that are), a value that is no number, a
  /// list outside min, max and mean, an empty list, and a division by zero.
  double evaluate(const nlohmann::ordered_json& results) const;

  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  // each once, in the order of the text

 private:
  enum class Op { number, name, negate, add, subtract, multiply, divide, abs, min, max, mean };
  struct Code {  // in postfix order, so that neither parsing nor evaluating is bounded by the stack
    Op op;
    double number = 0;
    std::string name;
    std::size_t count = 0;  // of arguments of a function
  };
  friend class ExpressionParser;
  std::string text_;
  std::vector<Code> code_;
};

}  // namespace headlab
