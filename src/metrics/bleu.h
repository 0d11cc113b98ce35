#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "modules/base/fields.h"
#include "src/metrics/segments.h"

namespace headlab {

/// What BLEU leaves open (Post, "A Call for Clarity in Reporting BLEU Scores", arXiv 1804.08771).
struct BleuOptions : Described<BleuOptions> {
  std::string tokenizer = "13a";
  std::string smoothing = "exp";
  std::optional<double> smoothing_value;
  bool effective_order = false;
  bool lower_case = false;

  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

struct BleuScore {
  double score = 0;                                     // 0 to 100
  std::array<double, 4> precisions{};                   // of 1-grams to 4-grams, smoothed, 0 to 100
  double brevity_penalty = 1;                           // exp(1 - r/h) for h < r, else 1
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens; of several references, the length closest to h
  double ratio() const;                                 // h/r, 0 for empty references
  /// As sacreBLEU prints it: "34.21 66.7/50.0/25.0/16.4 (BP = 1.000 ratio = 1.020 hyp_len = 51 ref_len = 50)".
  std::string text(int decimals = 2) const;
};

/// BLEU (Papineni, Roukos, Ward, Zhu, ACL 2002), equal to sacreBLEU's:
///   BLEU = 100 BP exp(mean over n = 1..4 of log p_n),  p_n = clipped matches of n-grams / n-grams of the hypotheses.
/// Orders without a match are smoothed (Chen and Cherry, WMT 2014): exp halves a precision of 1/total each time, floor
/// puts smoothing_value (0.1) for the matches, add-k adds it (1) to matches and totals of n > 1. No match at all is 0.
class Bleu {
 public:
  explicit Bleu(BleuOptions options = {}) : options_(std::move(options)) {}

  /// Hypotheses and references are detokenised text; references[r][i] is the r-th of sentence i. Throws Error for
  /// layouts that do not fit.
  BleuScore corpus(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references) const;
  /// One sentence; effective_order suits it (sacreBLEU's advice), since short sentences have no 4-grams.
  BleuScore sentence(const std::string& hypothesis, const std::vector<std::string>& references) const;

  /// For each sentence {hypothesis length, reference length, matches of 1..4-grams, n-grams of order 1..4}.
  std::vector<Counts> counts(const std::vector<std::string>& hypotheses,
                             const std::vector<std::vector<std::string>>& references) const;
  Counts counts(const std::string& hypothesis, const std::vector<std::string>& references) const;
  BleuScore score(const Counts& counts) const;

  /// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0": sacreBLEU's own, its version being the one equalled.
  std::string signature(int64_t references) const;

  /// The tokens of a text: what the matches are counted of. Ill-formed UTF-8 reads as U+FFFD.
  std::vector<std::string> tokens(const std::string& text) const;

 private:
  BleuOptions options_;
};

}  // namespace headlab
