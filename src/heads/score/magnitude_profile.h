#pragma once

#include "src/heads/scorer.h"

namespace headlab {

struct MagnitudeProfileOptions : Described<MagnitudeProfileOptions> {
  double threshold = 2;
  void describe(Fields& fields) override;
};

/// How far a head's rows stand out of its layer's by their norms; weights alone, no data.          (2609.26177)
///   r_mi  = ||row i||_2 of the projection m (queries, keys, values, and the columns of the output's matrix)
///   z_mi  = (r_mi - median) / (1.4826 median |r_mi - median|), over the rows of m of all heads of the layer
///   MP_h  = sum_m mean over the rows i of head h of max(z_mi - threshold, 0)
/// Rows of keys and values that several heads read count for each by an equal share. Heads of equal score, of those
/// without a row that stands out above all, are in the order of their part of the output's matrix: ||W_O^h||_F / the
/// layer's largest, times 1e-9, is added. The abstract gives the idea; the formula is our reading of it.
class MagnitudeProfile : public Scorer {
 public:
  explicit MagnitudeProfile(const MagnitudeProfileOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  MagnitudeProfileOptions options_;
};

/// sum_m ||W_m^h||_F over the same projections, shared rows by equal shares: what is left of the profile where all rows
/// count.
class NormScorer : public Scorer {
 public:
  explicit NormScorer(const NoOptions&) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;
};

}  // namespace headlab
