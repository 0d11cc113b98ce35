#pragma once

#include "src/convert/conversion.h"
#include "src/convert/parafac.h"

namespace headlab {

struct CollaborativeConversionOptions : Described<CollaborativeConversionOptions> {
  ParafacOptions parafac;
  std::string scale = "original";
  void describe(Fields& fields) override;
};

/// Heads that share `rank` dimensions of queries and keys (the project collaborative, 2006.16362, section 4), from
/// heads that have their own: the products W_Q^h W_K^h^T, one slice a head, are a sum of `rank` components (parafac.h),
///
///   W_Q^h W_K^h^T ~ W_Q diag(m_h) W_K^T,   c_h = W_K^h b_Q^h
///
/// A key's bias adds to all scores of a query alike: softmax and sparsemax take it away. Values stay. Scores are
/// divided by what they were divided by (scale "original"); "shared" divides by sqrt(rank / heads), as the paper's
/// program does, which is another temperature: scores are too large by sqrt(heads * d_k / rank). Attentions whose
/// positions turn queries and keys, or look at them, can't be converted: between the two maps of a slice lies a
/// rotation for each distance.
/// Figures: "error" of all slices (Frobenius norms); "separate_error", of heads that keep as many dimensions, each its
/// own best; "iterations".
class CollaborativeConversion : public Conversion {
 public:
  explicit CollaborativeConversion(const CollaborativeConversionOptions& options) : options_(options) {}
  void look(const ConversionWork& work) override { seed_ = work.seed; }
  AttentionOptions options(const Attention& from, Site site) override;
  nlohmann::ordered_json weights(const Attention& from, Attention& to, Site site) override;

 private:
  CollaborativeConversionOptions options_;
  uint64_t seed_ = 0;
};

}  // namespace headlab
