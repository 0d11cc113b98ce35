#include "src/run/ledger.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <sstream>

#include "src/checkpoint/json_file.h"
#include "src/terminal/format.h"
#include "src/terminal/table.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

std::string markdown_cell(const std::string& text) {
  std::string safe;
  for (char c : text) safe += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return safe;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Json to_json(const LedgerEntry& entry) {
  Json json{{"spec", entry.spec}, {"name", entry.name},       {"paper", entry.paper},   {"number", entry.number},
            {"runs", entry.runs}, {"seconds", entry.seconds}, {"claims", Json::array()}};
  if (!entry.failed.empty()) json["failed"] = entry.failed;
  for (const auto& row : entry.claims) {
    Json claim{{"claim", row.claim}, {"control", row.control}, {"expected", row.expected}, {"measured", row.measured}};
    if (row.difference) claim.update(Json{{"difference", *row.difference}, {"low", *row.low}, {"high", *row.high}});
    claim.update(Json{{"runs", row.runs}, {"answer", row.answer}});
    json["claims"].push_back(std::move(claim));
  }
  return json;
}

/// One line a claim: what a table program reads.
std::string to_csv(const Json& entries) {
  std::string text = "spec,number,paper,claim,control,expected,measured,difference,low,high,runs,verdict\n";
  for (const auto& entry : entries) {
    const auto begin = csv_cell(entry.value("spec", "")) + "," + std::to_string(entry.value("number", int64_t{0})) +
                       "," + csv_cell(entry.value("paper", "")) + ",";
    if (entry.contains("failed"))
      text += begin + "failed: " + csv_cell(entry.value("failed", "")) + ",,,,,,,0,failed\n";
    for (const auto& claim : entry.value("claims", Json::array())) {
      text += begin;
      for (const auto* key : {"claim", "control", "expected", "measured"}) text += csv_cell(claim.value(key, "")) + ",";
      for (const auto* key : {"difference", "low", "high"})
        text += (claim.contains(key) ? claim.at(key).dump() : "") + ",";
      text += std::to_string(claim.value("runs", int64_t{0})) + "," + csv_cell(claim.value("answer", "")) + "\n";
    }
  }
  return text;
}

std::string file_name(const LedgerEntry& entry) { return std::filesystem::path(entry.spec).filename().string(); }

std::string with_control(const ClaimRow& row) {
  return row.claim + (row.control.empty() ? "" : " (control: " + row.control + ")");
}

}  // namespace

int64_t paper_number(const std::string& spec_path) {
  const auto name = std::filesystem::path(spec_path).filename().string();
  int64_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  return read.ec == std::errc() && read.ptr != name.data() + name.size() && *read.ptr == '-' ? number : 0;
}

LedgerEntry ledger_entry(const std::string& spec_path, const RunSpec& spec, const ExperimentOutcome& outcome) {
  LedgerEntry entry{spec_path, spec.name, spec.paper, paper_number(spec_path), outcome.runs.size(), 0, {}, ""};
  for (const auto& run : outcome.runs) entry.seconds += run.results.value("seconds", 0.0);
  for (const auto& expectation : spec.expect) {
    std::size_t held = 0;
    std::vector<Verdict> verdicts;
    for (const auto& run : outcome.runs) {
      verdicts.push_back(judge(expectation, claim_view(run.results)));
      held += verdicts.back().holds;
    }
    if (verdicts.empty()) continue;
    auto measured = measured_text(verdicts.front());
    if (verdicts.size() > 1) {
      const auto by_left = [](const Verdict& a, const Verdict& b) { return a.left < b.left; };
      measured = measured_text(*std::min_element(verdicts.begin(), verdicts.end(), by_left)) + " to " +
                 measured_text(*std::max_element(verdicts.begin(), verdicts.end(), by_left)) + ", holds in " +
                 std::to_string(held) + " of " + std::to_string(verdicts.size()) + " runs";
    }
    entry.claims.push_back({expectation.claim,
                            expectation.control,
                            expected_text(verdicts.front()),
                            measured,
                            held == verdicts.size() ? "holds" : "does not hold",
                            {},
                            {},
                            {},
                            verdicts.size()});
  }
  for (const auto& comparison : outcome.comparisons)
    entry.claims.push_back({comparison.verdict.claim, comparison.verdict.control, expected_text(comparison.verdict),
                            measured_text(comparison), comparison.answer(), comparison.difference, comparison.low,
                            comparison.high, comparison.differences.size()});
  return entry;
}

LedgerEntry failed_entry(const std::string& spec_path, const RunSpec& spec, const std::string& why) {
  return {spec_path, spec.name, spec.paper, paper_number(spec_path), 0, 0, {}, why};
}

void keep_in_ledger(const std::filesystem::path& out, const std::vector<LedgerEntry>& entries) {
  const auto file = out / "ledger.json";
  std::vector<Json> all;
  if (std::filesystem::exists(file))
    for (const auto& old : read_ordered_json_file(file).value("specs", Json::array())) {
      const auto name = old.is_object() ? old.value("name", "") : "";
      if (std::none_of(entries.begin(), entries.end(), [&](const LedgerEntry& entry) { return entry.name == name; }))
        all.push_back(old);
    }
  for (const auto& entry : entries) all.push_back(to_json(entry));
  const auto place = [](const Json& entry) {
    const auto number = entry.value("number", int64_t{0});
    return std::pair(number == 0 ? std::numeric_limits<int64_t>::max() : number, entry.value("spec", ""));
  };
  std::stable_sort(all.begin(), all.end(), [&](const Json& a, const Json& b) { return place(a) < place(b); });
  make_folders(out);
  write_file_atomically(file, Json{{"specs", all}}.dump(2) + "\n");
  write_file_atomically(out / "ledger.csv", to_csv(Json(all)));
}

std::string ledger_text(const std::vector<LedgerEntry>& entries, int64_t columns) {
  Table table{{"#", "paper", "spec", "claim (control)", "expected", "measured", "verdict"}, {}};
  for (const auto& entry : entries) {
    const auto number = entry.number > 0 ? std::to_string(entry.number) : "";
    const auto spec = std::filesystem::path(entry.spec).stem().string();
    if (!entry.failed.empty()) table.rows.push_back({number, entry.paper, spec, "", "", entry.failed, "failed"});
    for (const auto& row : entry.claims)
      table.rows.push_back({number, entry.paper, spec, with_control(row), row.expected, row.measured, row.answer});
  }
  constexpr int64_t uncut = 1'000'000;
  const auto whole = table.text(uncut, 0);
  const auto line_fits = [&] {
    std::istringstream lines(whole);
    for (std::string line; std::getline(lines, line);)
      if (text_width(line) > columns) return false;
    return true;
  };
  if (line_fits()) return whole;
  // Too wide for a table: each claim with what was expected and measured below it, and nothing cut.
  std::string text;
  for (const auto& entry : entries) {
    text += (entry.number > 0 ? std::to_string(entry.number) + "  " : "") +
            std::filesystem::path(entry.spec).stem().string() + (entry.paper.empty() ? "" : "  " + entry.paper) +
            (entry.failed.empty() ? "" : "\n  failed               " + entry.failed) + "\n";
    for (const auto& row : entry.claims)
      text += "  " + padded(row.answer, 19) + "  " + with_control(row) + "\n" + std::string(23, ' ') + row.expected +
              "\n" + std::string(23, ' ') + row.measured + "\n";
  }
  return text;
}

std::string ledger_answer(const std::vector<LedgerEntry>& entries) {
  std::size_t total = 0, holding = 0, open = 0, failed = 0;
  for (const auto& entry : entries) {
    failed += !entry.failed.empty();
    for (const auto& row : entry.claims) {
      ++total;
      holding += row.answer == "holds";
      open += row.answer == "not enough evidence";
    }
  }
  return std::to_string(total) + (total == 1 ? " claim: " : " claims: ") + std::to_string(holding) +
         (holding == 1 ? " holds, " : " hold, ") + std::to_string(total - holding - open) + " do not hold, " +
         std::to_string(open) + " have not enough evidence" +
         (failed ? "; " + std::to_string(failed) + " of the specs failed" : "");
}

std::string markdown_table(const std::vector<LedgerEntry>& entries) {
  std::string text = "| spec | statement | expected | measured | verdict |\n|---|---|---|---|---|\n";
  for (const auto& entry : entries) {
    const auto begin = "| " + markdown_cell(file_name(entry)) + " | ";
    if (!entry.failed.empty()) text += begin + "| | " + markdown_cell(entry.failed) + " | **failed** |\n";
    for (const auto& row : entry.claims)
      text += begin + markdown_cell(row.claim) + (entry.paper.empty() ? "" : " (" + entry.paper + ")") +
              (row.control.empty() ? "" : "; control: " + markdown_cell(row.control)) + " | `" +
              markdown_cell(row.expected) + "` | " + markdown_cell(row.measured) + " | " +
              (row.answer == "holds" ? row.answer : "**" + row.answer + "**") + " |\n";
  }
  return text;
}

std::string replaced_section(const std::string& text, const std::string& name, const std::string& section) {
  const auto begin = "<!-- begin " + name + " -->\n", end = "<!-- end " + name + " -->";
  const auto from = text.find(begin);
  const auto to = from == std::string::npos ? from : text.find(end, from);
  if (to == std::string::npos)
    throw UsageError("expected the lines \"<!-- begin " + name + " -->\" and \"" + end +
                     "\", between which the table goes");
  return text.substr(0, from + begin.size()) + section + text.substr(to);
}

}  // namespace headlab
