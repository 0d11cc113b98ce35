#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "modules/base/fields.h"
#include "src/metrics/segments.h"

namespace headlab {

struct ChrfOptions : Described<ChrfOptions> {
  int64_t char_order = 6;
  int64_t word_order = 0;
  int64_t beta = 2;
  bool lower_case = false;
  bool whitespace = false;

  void describe(Fields& fields) override;
};

struct ChrfScore {
  double score = 0;  // 0 to 100
  std::string text(int decimals = 2) const { return fixed(score, decimals); }
};

/// chrF (Popovic, WMT 2015) and, with word_order 2, chrF++ (Popovic, WMT 2017), equal to sacreBLEU's:
///   chrF = 100 (1 + beta^2) P R / (beta^2 P + R),
/// P and R the means over character orders 1..char_order and word orders 1..word_order of the precision and recall of
/// n-grams, orders left out that hypothesis or reference is too short for. Characters are code points, white space left
/// out unless asked for; for words, one punctuation mark at the end or else the start of a word is split off. Of
/// several references each sentence counts the one that suits it best.
class Chrf {
 public:
  explicit Chrf(ChrfOptions options = {}) : options_(std::move(options)) {}

  /// references[r][i] is the r-th reference of sentence i. Throws Error for layouts that do not fit.
  ChrfScore corpus(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references) const;
  ChrfScore sentence(const std::string& hypothesis, const std::vector<std::string>& references) const;

  /// For each sentence and order {n-grams of the hypothesis, of the reference, matches}.
  std::vector<Counts> counts(const std::vector<std::string>& hypotheses,
                             const std::vector<std::vector<std::string>>& references) const;
  Counts counts(const std::string& hypothesis, const std::vector<std::string>& references) const;
  ChrfScore score(const Counts& counts) const;

  /// "chrF2", "chrF2++".
  std::string name() const;
  /// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0".
  std::string signature(int64_t references) const;

 private:
  ChrfOptions options_;
};

}  // namespace headlab
