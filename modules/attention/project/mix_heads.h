#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct MixHeadsOptions : Described<MixHeadsOptions> {
  std::vector<std::string> mix{"k", "v"};
  void describe(Fields& fields) override { fields.add("mix", mix, "what is mixed across heads").one_of({"k", "v"}); }
};

/// k~_h = sum_c Lambda^K_{c,h} k_c;  v~_h = sum_c Lambda^V_{c,h} v_c         (2601.19611)
/// The heads of the projection are the components c; with a grouped projection there are fewer components than heads,
/// and the cache holds the components alone. Starts as what the projection alone would give: head h reads component of
/// h. k_BGSK, v_BGSK -> k_BHSK, v_BHSK.
class MixHeads : public Adapter {
 public:
  MixHeads(const MixHeadsOptions& options, Shape shape);
  std::vector<Tensor> expand(std::vector<Tensor> kv) override;
  std::vector<int64_t> group_of(std::vector<int64_t> before) const override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t S) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor mixed(const Tensor& x_BGSK, const Tensor& lambda_GH) const;
  Shape shape_;
  Tensor key_mix, value_mix;  // [G,H]; undefined: not mixed
};

}  // namespace headlab
