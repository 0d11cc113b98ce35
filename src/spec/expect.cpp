#include "src/spec/expect.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "src/spec/expression.h"

namespace headlab {

namespace {

struct Relation {
  const char* name;
  const char* sign;
  std::optional<std::string> ExpectOptions::*bound;
  bool (*holds)(double left, double right, double within);
};

const Relation relations[] = {
    {"at_least", ">=", &ExpectOptions::at_least, [](double a, double b, double) { return a >= b; }},
    {"at_most", "<=", &ExpectOptions::at_most, [](double a, double b, double) { return a <= b; }},
    {"above", ">", &ExpectOptions::above, [](double a, double b, double) { return a > b; }},
    {"below", "<", &ExpectOptions::below, [](double a, double b, double) { return a < b; }},
    {"equals", "=", &ExpectOptions::equals,
     [](double a, double b, double w) { return a == b || std::abs(a - b) <= w; }},
};

void check_expression(const std::string& field, const std::string& text, Problems& problems) {
  try {
    Expression::parse(text);
  } catch (const UsageError& error) {
    problems.add(field, error.what());
  }
}

std::string measured_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string sign_of(const Verdict& verdict) {
  for (const Relation& relation : relations)
    if (verdict.relation == relation.name) return std::string(" ") + relation.sign + " ";
  return " ? ";
}

}  // namespace

void ExpectOptions::describe(Fields& fields) {
  fields.add("claim", claim, "what is claimed, in words");
  fields.add("control", control, "in words, what it is measured against: random heads, equal budget, shuffled labels");
  fields.add("that", that, "the left side: an expression over the results, such as pruned.bleu").required();
  fields.add("at_least", at_least, "that >= this expression or number").or_number();
  fields.add("at_most", at_most, "that <= this expression or number").or_number();
  fields.add("above", above, "that > this expression or number").or_number();
  fields.add("below", below, "that < this expression or number").or_number();
  fields.add("equals", equals, "that = this expression or number").or_number();
  fields.add("within", within, "the largest difference that equals allows").at_least(0).means("absent: 0");
}

void ExpectOptions::rules(Problems& problems) const {
  check_expression("that", that, problems);
  std::vector<std::string> given;
  for (const Relation& relation : relations) {
    const auto& bound = this->*relation.bound;
    if (!bound) continue;
    given.push_back(relation.name);
    check_expression(relation.name, *bound, problems);
  }
  if (given.empty()) problems.add("", "expected a bound: one of at_least, at_most, above, below, equals");
  if (given.size() > 1) problems.add(given[1], "expected one bound, got " + given[0] + " and " + given[1]);
  if (within && !equals) problems.add("within", "goes with equals only");
}

Verdict judge(const ExpectOptions& expectation, const nlohmann::ordered_json& results) {
  for (const Relation& relation : relations) {
    const auto& bound = expectation.*relation.bound;
    if (!bound) continue;
    Verdict verdict{expectation.claim, expectation.that, relation.name, *bound, expectation.within};
    verdict.left = Expression::parse(expectation.that).evaluate(results);
    verdict.right = Expression::parse(*bound).evaluate(results);
    verdict.holds = relation.holds(verdict.left, verdict.right, expectation.within.value_or(0));
    verdict.control = expectation.control;
    return verdict;
  }
  throw UsageError("the claim about " + expectation.that + " has no bound");
}

nlohmann::ordered_json to_json(const Verdict& verdict) {
  nlohmann::ordered_json json = {{"claim", verdict.claim}, {"that", verdict.that}, {"relation", verdict.relation},
                                 {"bound", verdict.bound}, {"left", verdict.left}, {"right", verdict.right},
                                 {"holds", verdict.holds}};
  if (verdict.within) json["within"] = *verdict.within;
  if (!verdict.control.empty()) json["control"] = verdict.control;
  return json;
}

bool relation_holds(const ExpectOptions& expectation, double difference) {
  for (const Relation& relation : relations)
    if (expectation.*relation.bound) return relation.holds(difference, 0, expectation.within.value_or(0));
  return false;
}

std::string expected_text(const Verdict& verdict) {
  return verdict.that + sign_of(verdict) + verdict.bound +
         (verdict.within ? " within " + measured_number(*verdict.within) : "");
}

std::string measured_text(const Verdict& verdict) {
  return measured_number(verdict.left) + sign_of(verdict) + measured_number(verdict.right);
}

std::string claim_text(const std::vector<ClaimLine>& lines) {
  std::size_t width = 0, answers = std::string("does not hold").size();
  for (const ClaimLine& line : lines) {
    width = std::max(width, line.expected.size());
    answers = std::max(answers, line.answer.size());
  }
  std::string text;
  for (const ClaimLine& line : lines) {
    text += line.answer + std::string(answers - line.answer.size() + 2, ' ') + line.expected +
            std::string(width - line.expected.size() + 3, ' ') + line.measured + "\n";
  }
  return text;
}

std::string verdict_text(const std::vector<Verdict>& verdicts) {
  std::vector<ClaimLine> lines;
  for (const Verdict& verdict : verdicts)
    lines.push_back({verdict.holds ? "holds" : "does not hold", expected_text(verdict), measured_text(verdict)});
  return claim_text(lines);
}

}  // namespace headlab
