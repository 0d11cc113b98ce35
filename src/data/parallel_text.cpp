#include "src/data/parallel_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "modules/base/error.h"
#include "src/terminal/format.h"
#include "src/text/lines.h"

namespace headlab {
namespace {

std::string count(int64_t n, const std::string& what) { return with_commas(n) + " " + what + (n == 1 ? "" : "s"); }

std::vector<int64_t> lengths(const std::vector<std::vector<int32_t>>& rows) {
  std::vector<int64_t> result;
  result.reserve(rows.size());
  for (const auto& row : rows) result.push_back(static_cast<int64_t>(row.size()));
  return result;
}

}  // namespace

std::string ParallelReport::text() const {
  std::string reasons = with_commas(empty) + " empty, " + with_commas(too_long) + " too long";
  if (not_utf8) reasons += ", " + with_commas(not_utf8) + " not UTF-8";
  if (nul) reasons += ", " + with_commas(nul) + " with NUL";
  return count(skipped(), "line") + " skipped (" + reasons + ")";
}

nlohmann::ordered_json ParallelReport::counts() const {
  nlohmann::ordered_json all{{"lines", lines}, {"skipped", skipped()}};
  const std::pair<const char*, int64_t> found[] = {{"empty", empty},       {"too_long", too_long},
                                                   {"not_utf8", not_utf8}, {"with_nul", nul},
                                                   {"crlf", crlf},         {"byte_order_marks", byte_order_marks}};
  for (const auto& [name, number] : found)
    if (number > 0) all[name] = number;
  return all;
}

ParallelText ParallelText::read(const std::string& source_path, const std::string& target_path, KeepLines keep) {
  LineReader source(source_path), target(target_path);
  ParallelText text;
  ParallelReport& report = text.report;
  std::string left, right;
  for (;;) {
    const bool has_left = source.next(left), has_right = target.next(right);
    if (has_left != has_right) {
      while (source.next(left)) {}
      while (target.next(right)) {}
      throw FileError(source_path + " has " + count(source.counts().lines, "line") + ", " + target_path + " has " +
                      with_commas(target.counts().lines) + "; expected translations line by line");
    }
    if (!has_left) break;
    if (keep == KeepLines::all) {
      source.refuse_fault();
      target.refuse_fault();
    } else {
      const auto either = [&](LineFault fault) { return source.fault() == fault || target.fault() == fault; };
      int64_t* reason = either(LineFault::too_long)   ? &report.too_long
                        : either(LineFault::nul)      ? &report.nul
                        : either(LineFault::not_utf8) ? &report.not_utf8
                        : either(LineFault::empty)    ? &report.empty
                                                      : nullptr;
      if (reason) {
        ++*reason;
        continue;
      }
    }
    text.line.push_back(source.counts().lines - 1);
    text.source.push_back(left);
    text.target.push_back(right);
  }
  report.lines = source.counts().lines;
  report.crlf = source.counts().crlf + target.counts().crlf;
  report.byte_order_marks = int64_t{source.counts().byte_order_mark} + int64_t{target.counts().byte_order_mark};
  if (text.line.empty()) {
    throw FileError(source_path + ", " + target_path + ": expected at least one pair of lines, got " +
                    (report.lines == 0 ? "empty files" : "none that is usable: " + report.text()));
  }
  return text;
}

std::vector<int64_t> EncodedPairs::source_lengths() const { return lengths(source); }
std::vector<int64_t> EncodedPairs::target_lengths() const { return lengths(target); }

EncodedPairs encode_pairs(ParallelText& text, const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                          KeepLines keep) {
  EncodedPairs pairs;
  const auto ids = [](const Tokenizer& tokenizer, const std::string& line) {
    const std::vector<int64_t> wide = tokenizer.encode(line);
    return std::vector<int32_t>(wide.begin(), wide.end());
  };
  for (std::size_t i = 0; i < text.source.size(); ++i) {
    std::vector<int32_t> left = ids(source, text.source[i]), right = ids(target, text.target[i]);
    if (max_length > 0 && static_cast<int64_t>(std::max(left.size(), right.size())) > max_length) {
      ++text.report.too_long;
      continue;
    }
    if (keep == KeepLines::usable && (left.empty() || right.empty())) {
      ++text.report.empty;
      continue;
    }
    pairs.source.push_back(std::move(left));
    pairs.target.push_back(std::move(right));
    pairs.pair.push_back(static_cast<int64_t>(i));
  }
  if (pairs.pair.empty()) {
    throw Error("expected at least one pair of at most " + std::to_string(max_length) +
                " tokens, got none: " + text.report.text());
  }
  return pairs;
}

}  // namespace headlab
