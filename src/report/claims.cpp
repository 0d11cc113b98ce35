#include "src/report/claims.h"

#include <algorithm>
#include <cctype>

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::escape;

namespace {

constexpr std::pair<const char*, const char*> relations[] = {
    {"at_least", "≥"}, {"at_most", "≤"}, {"above", ">"}, {"below", "<"}, {"equals", "="}};

std::string relation_sign(const std::string& relation) {
  for (auto& [name, sign] : relations) {
    if (relation == name) return sign;
  }
  return relation;
}

/// "bleu" of "pruned.bleu", "mean(random.bleu)", "arm.full.bleu - 3" and "ablate.enc.self.0.3.bleu": the last name of
/// the first path.
std::string metric_of(const std::string& expression) {
  auto dot = std::min(expression.find('.'), expression.size());
  auto end = std::find_if_not(expression.begin() + static_cast<std::ptrdiff_t>(dot), expression.end(),
                              [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  auto path = std::string(expression.begin(), end);
  return path.substr(path.rfind('.') + 1);  // the whole where there is no dot
}

enum class Answer { holds, fails, open };

Answer answer_of(const json& claim) {
  if (member(claim, "holds") == true) return Answer::holds;
  return member(claim, "undecided") == true ? Answer::open : Answer::fails;
}

constexpr const char* classes[] = {"holds", "fails", "open"};
constexpr const char* answers[] = {"✓ holds", "✗ does not hold", "? not enough evidence"};

std::string signed_significant(double value) { return (value > 0 ? "+" : "") + significant(value, 4); }

/// The interval of the differences on a line, with the bound at 0 and the side that is claimed shaded. The text beside
/// it says the same.
std::string interval_drawing(const json& claim) {
  constexpr double width = 200, height = 26, margin = 8, middle = 13;
  auto low = number_of(claim, "low"), high = number_of(claim, "high"), mean = number_of(claim, "difference");
  auto& seeds = member(claim, "differences");
  if (!low || !high || !mean || !std::isfinite(*low) || !std::isfinite(*high) || !seeds.is_array()) return "";
  auto within = number_of(claim, "within").value_or(0);
  auto relation = text_of(claim, "relation");
  auto least = std::min(*low, relation == "equals" ? -within : 0.0),
       most = std::max(*high, relation == "equals" ? within : 0.0);
  std::vector<double> all;
  for (auto& seed : seeds) {
    if (seed.is_number() && std::isfinite(seed.get<double>())) all.push_back(seed.get<double>());
  }
  for (auto value : all) least = std::min(least, value), most = std::max(most, value);
  if (most <= least) return "";
  auto x = [&](double value) { return margin + (value - least) / (most - least) * (width - 2 * margin); };
  auto from = relation == "equals" ? x(-within) : relation == "at_least" || relation == "above" ? x(0) : 0;
  auto to = relation == "equals" ? x(within) : relation == "at_least" || relation == "above" ? width : x(0);
  auto text = [](double value) { return fixed(value, 1); };
  auto bar = [&](double at, double half) {
    return "M" + text(at) + "," + text(middle - half) + "V" + text(middle + half);
  };
  std::string svg = "<svg class=\"interval\" viewBox=\"0 0 200 26\" aria-hidden=\"true\"><path class=\"side\" d=\"M" +
                    text(from) + ",0H" + text(to) + "V" + text(height) + "H" + text(from) +
                    "Z\"/><path class=\"bound\" d=\"" + bar(x(0), 13) + "\"/><path class=\"reach\" d=\"M" +
                    text(x(*low)) + "," + text(middle) + "H" + text(x(*high)) + bar(x(*low), 5) + bar(x(*high), 5) +
                    "\"/>";
  for (auto value : all)
    svg += "<circle class=\"seed\" cx=\"" + text(x(value)) + "\" cy=\"" + text(middle) + "\" r=\"2.2\"/>";
  return svg + "<circle class=\"mean\" cx=\"" + text(x(*mean)) + "\" cy=\"" + text(middle) + "\" r=\"4\"/></svg>";
}

/// What the differences of the seeds say; empty for a claim of one run.
std::string evidence(const json& claim) {
  if (auto& runs = member(claim, "runs"); runs.is_number()) {
    return "<span class=\"evidence\">holds in " + dump(member(claim, "runs_holding")) + " of " + dump(runs) +
           " runs; the numbers are those of the run that comes nearest to failing</span>";
  }
  auto difference = number_of(claim, "difference"), low = number_of(claim, "low"), high = number_of(claim, "high");
  auto& seeds = member(claim, "differences");
  if (!difference || !low || !high || !seeds.is_array()) return "";
  auto text = "difference " + signed_significant(*difference);
  if (seeds.size() > 1) {
    text += " (95 % interval " + signed_significant(*low) + " to " + signed_significant(*high) + ", " +
            std::to_string(seeds.size()) + " seeds)";
  } else {
    text += ", one seed";
  }
  return "<span class=\"evidence\">" + (seeds.size() > 1 ? interval_drawing(claim) : "") + "<span>" + escape(text) +
         "</span></span>";
}

/// How far a run's claim is from failing; below 0 it fails.
double margin_of(const json& claim) {
  auto left = number_of(claim, "left").value_or(std::nan("")), right = number_of(claim, "right").value_or(std::nan(""));
  auto relation = text_of(claim, "relation");
  auto margin = relation == "at_least" || relation == "above" ? left - right
                : relation == "at_most" || relation == "below"
                    ? right - left
                    : number_of(claim, "within").value_or(0) - std::abs(left - right);
  return std::isfinite(margin) ? margin : -INFINITY;
}

}  // namespace

std::string claim_item(const json& claim) {
  auto answer = static_cast<std::size_t>(answer_of(claim));
  auto that = text_of(claim, "that"), bound = text_of(claim, "bound");
  if (bound.empty() && member(claim, "bound").is_number()) bound = dump(member(claim, "bound"));
  auto sign = relation_sign(text_of(claim, "relation"));
  auto side = [&](const char* key) {
    auto value = number_of(claim, key);
    return value ? figure(metric_of(that), *value) : std::string("?");
  };
  auto left = side("left"), right = side("right");
  if (left == right) {  // the digits of the metric hide the difference
    auto exact = [&](const char* key) { return significant(number_of(claim, key).value_or(std::nan("")), 8); };
    left = exact("left");
    right = exact("right");
  }
  auto within = number_of(claim, "within");
  auto control = text_of(claim, "control");
  return std::string("<li class=\"") + classes[answer] + "\"><b>" + answers[answer] + "</b><span>" +
         escape(text_of(claim, "claim")) +
         (control.empty() ? "" : " <span class=\"range\">control: " + escape(control) + "</span>") +
         "</span><span class=\"numbers\">" + escape(left + " " + sign + " " + right) + "</span><code>" +
         escape(that + " " + sign + " " + bound + (within ? " (within " + significant(*within, 4) + ")" : "")) +
         "</code>" + evidence(claim) + "</li>\n";
}

std::vector<json> joined_claims(const std::vector<const json*>& results) {
  std::vector<json> claims;
  std::size_t runs = 0;
  for (auto* one : results) {
    auto& expected = member(*one, "expect");
    if (!expected.is_array() || expected.empty()) continue;
    ++runs;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!expected[i].is_object()) continue;
      if (claims.size() <= i) claims.resize(i + 1);
      bool first = claims[i].is_null();
      auto held =
          (first ? 0 : claims[i]["runs_holding"].get<int64_t>()) + (member(expected[i], "holds") == true ? 1 : 0);
      if (first || margin_of(expected[i]) < margin_of(claims[i])) claims[i] = expected[i];
      claims[i]["runs_holding"] = held;
    }
  }
  claims.erase(std::remove_if(claims.begin(), claims.end(), [](auto& claim) { return claim.is_null(); }), claims.end());
  for (auto& claim : claims) {
    claim["runs"] = runs;
    claim["holds"] = claim["runs_holding"] == claim["runs"];
  }
  return claims;
}

std::string answer_text(const std::vector<json>& claims) {
  auto count = [&](Answer answer) {
    return std::count_if(claims.begin(), claims.end(), [&](auto& claim) { return answer_of(claim) == answer; });
  };
  auto total = static_cast<std::ptrdiff_t>(claims.size()), holding = count(Answer::holds), open = count(Answer::open);
  if (total == 1) {
    return holding ? "The claim holds."
           : open  ? "There is not enough evidence for or against the claim."
                   : "The claim does not hold.";
  }
  auto answer = holding == total ? "All " + std::to_string(total) + " claims hold"
                : holding == 0   ? "None of the " + std::to_string(total) + " claims holds"
                                 : std::to_string(holding) + " of " + std::to_string(total) + " claims hold";
  return answer + (open ? "; for " + std::to_string(open) + " there is not enough evidence" : "") + ".";
}

std::string claims_html(const std::vector<json>& claims) {
  if (claims.empty()) return "";
  std::string items;
  for (auto& claim : claims) items += claim_item(claim);
  return "<p>" + answer_text(claims) + "</p>\n<ul class=\"verdicts\">\n" + items + "</ul>\n";
}

}  // namespace headlab::report
