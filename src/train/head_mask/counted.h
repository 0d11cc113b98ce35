#pragma once

#include "src/heads/head_set.h"
#include "src/train/head_mask.h"

namespace headlab {

struct CountedMaskOptions : Described<CountedMaskOptions> {
  int64_t count = 1;
  std::vector<std::string> stacks;
  bool rescale = false;
  void describe(Fields& fields) override;
};

/// Masks `count` of the heads of its stacks in each update.          (2009.09672, section 3)
/// rescale: the other heads are multiplied by all / left. Throws UsageError where there are fewer heads than `count`.
class CountedMask : public HeadMask {
 public:
  CountedMask(const CountedMaskOptions& options, const Model& model, const std::string& where);
  std::map<Stack, Tensor> scale(const MaskedUpdate& update) override;

 protected:
  /// Which of them, options_.count in number; it is asked for at least one.
  virtual HeadSet choose(const MaskedUpdate& update) const = 0;
  CountedMaskOptions options_;
  HeadSet heads_;

 private:
  std::map<Stack, Tensor> ones_;
};

/// Drawn uniformly, without repeats.
class RandomMask : public CountedMask {
 public:
  using CountedMask::CountedMask;

 protected:
  HeadSet choose(const MaskedUpdate& update) const override;
};

/// The most important ones for this very update: those of the largest |dL/dxi_h| = |sum z_h dL/dz_h|, found by a
/// forward and a backward pass without an update. Ties go by name.
class ImportanceMask : public CountedMask {
 public:
  using CountedMask::CountedMask;

 protected:
  HeadSet choose(const MaskedUpdate& update) const override;
};

}  // namespace headlab
