#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/text/tokenizer.h"

namespace headlab {

/// What became of the lines of a parallel text.
struct ParallelReport {
  int64_t lines = 0;                                       // of each file
  int64_t empty = 0, too_long = 0, not_utf8 = 0, nul = 0;  // pairs skipped because of either side; one reason a pair
  int64_t crlf = 0;                                        // line ends of either file that were CR LF
  int64_t byte_order_marks = 0;                            // files that began with one
  int64_t skipped() const { return empty + too_long + not_utf8 + nul; }
  int64_t kept() const { return lines - skipped(); }
  /// "3 lines skipped (0 empty, 3 too long)"; the rarer reasons are named only where they occur.
  std::string text() const;
  /// {"lines": 6, "skipped": 4, "empty": 2, ...}: what results.json says; reasons that did not occur are left out.
  nlohmann::ordered_json counts() const;
};

/// Which lines of a parallel text stay.
enum class KeepLines {
  usable,  // training: pairs with an empty, NUL, ill-encoded or far too long side are skipped and counted
  all,     // evaluation: line n stays line n, empty ones too; the other faults are an Error
};

/// Two files, translations of each other line by line.
struct ParallelText {
  std::vector<std::string> source, target;
  std::vector<int64_t> line;  // of each pair, from 0
  ParallelReport report;

  /// Reads both files side by side. Throws FileError where one cannot be read, where the numbers of lines differ (with
  /// both counts), and where no pair is left.
  static ParallelText read(const std::string& source_path, const std::string& target_path,
                           KeepLines keep = KeepLines::usable);
};

/// A parallel text as ids, without bos and eos; encoded once, kept for all epochs.
struct EncodedPairs {
  std::vector<std::vector<int32_t>> source, target;
  std::vector<int64_t> pair;  // of each row, its index in the ParallelText
  std::vector<int64_t> source_lengths() const;
  std::vector<int64_t> target_lengths() const;
};

/// Encodes each pair. Pairs of which a side has more than `max_length` tokens (0: no limit) are left out and counted in
/// `text.report.too_long`; the limit counts neither bos nor eos. A side that encodes to nothing is counted as empty and
/// left out, unless `keep` is all. Throws Error where no pair is left.
EncodedPairs encode_pairs(ParallelText& text, const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                          KeepLines keep = KeepLines::usable);

}  // namespace headlab
