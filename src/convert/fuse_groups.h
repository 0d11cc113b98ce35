#pragma once

#include "src/convert/grouping.h"

namespace headlab {

struct FuseGroupsConversionOptions : Described<FuseGroupsConversionOptions> {
  GroupingOptions grouping;
  int64_t fuse_steps = 200;
  double lr_lambda = 0.01;
  void describe(Fields& fields) override;
};

/// Heads that a training then fuses: the adapter fuse_groups over keys and values of each head, groups chosen by
/// group_heads(). The function stays what it was. Figures: "key_groups", "value_groups".          (2406.06567)
class FuseGroupsConversion : public Conversion {
 public:
  explicit FuseGroupsConversion(const FuseGroupsConversionOptions& options) : options_(options) {}
  void look(const ConversionWork& work) override { groups_ = group_heads(work, options_.grouping); }
  AttentionOptions options(const Attention& from, Site site) override;
  nlohmann::ordered_json weights(const Attention& from, Attention& to, Site site) override;

 private:
  FuseGroupsConversionOptions options_;
  std::map<Site, FusionGroups> groups_;
};

}  // namespace headlab
