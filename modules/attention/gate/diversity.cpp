#include "modules/attention/gate/diversity.h"

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

constexpr double smallest = 1e-24;  // of a squared length: keeps a vector of zeros at 0

/// The sum of cosines of all pairs h != g, or of their squares: [B,T].
Tensor over_pairs(const Tensor& cosines_BTHH, bool squared) {
  const auto each = squared ? cosines_BTHH.square() : cosines_BTHH;
  return each.sum({-2, -1}) - each.diagonal(0, -2, -1).sum(-1);
}

/// u_h . u_g / (|u_h| |u_g|) of rows: [..., H, N] -> [..., H, H]
Tensor cosines(const Tensor& rows) {
  const auto unit = rows * rows.square().sum(-1, /*keepdim=*/true).clamp_min(smallest).rsqrt();
  return torch::matmul(unit, unit.transpose(-2, -1));
}

/// Looks at heads as they pass, and leaves their likeness as a loss.
struct LikenessTap : Tap {
  LikenessTap(const DiversityOptions& options, Site site)
      : options(options), site(site), place(place_of_likeness(options.on)) {}
  const DiversityOptions& options;
  Site site;
  At place;
  bool wants(At at, Site of) const override { return at == place && of == site; }
  Tensor see(At at, Site, Tensor value, const AttentionCall* call) override {
    const auto found = likeness(options.form, likeness_vectors(at, value, *call), likeness_mask(at, *call));
    if (found.sum.defined()) call->run.aux.push_back({"diversity", site, options.penalty * found.sum, found.count});
    return value;
  }
};

}  // namespace

Likeness likeness(const std::string& form, const Tensor& u_BHTK, const Tensor& mask_BT, bool with_pairs) {
  const auto H = u_BHTK.size(1);
  if (H < 2) return {};
  auto u_BTHK = u_BHTK.to(at_least_float(u_BHTK.scalar_type())).transpose(1, 2);
  auto real_BT =
      mask_BT.defined() ? mask_BT.to(u_BTHK.scalar_type()) : torch::ones_like(u_BTHK.select(-1, 0).select(-1, 0));
  Tensor each, weight;  // [.., H,H] of tokens or texts, and which of them count
  if (form == "cross_correlation") {
    const auto real = real_BT.unsqueeze(-1).unsqueeze(-1);
    const auto mean = (u_BTHK * real).sum(1, /*keepdim=*/true) / real.sum(1, /*keepdim=*/true).clamp_min(1);
    each = cosines(((u_BTHK - mean) * real).transpose(1, 2).flatten(2));
    weight = real_BT.amax(1);
  } else {
    each = cosines(u_BTHK);
    weight = real_BT;
  }
  const bool squared = form != "cosine";
  Likeness made;
  made.sum = (over_pairs(each, squared) * weight).sum() / static_cast<double>(H * (H - 1));
  made.count = weight.sum().clamp_min(1);
  if (with_pairs)
    made.pairs_HH = ((squared ? each.square() : each) * weight.unsqueeze(-1).unsqueeze(-1)).flatten(0, -3).sum(0);
  return made;
}

const std::vector<std::string>& likeness_forms() {
  static const std::vector<std::string> names{"cosine", "cos2", "cross_correlation"};
  return names;
}

const std::vector<std::string>& likeness_places() {
  static const std::vector<std::string> names{"output", "values", "weights"};
  return names;
}

At place_of_likeness(const std::string& on) { return on == "output" ? At::z : on == "values" ? At::v : At::weights; }

Tensor likeness_mask(At at, const AttentionCall& call) {
  const auto& see = call.see;
  if (at == At::v && !call.is_self()) return see.key_mask_BS;
  return see.query_mask_BT.defined() || !call.is_self() ? see.query_mask_BT : see.key_mask_BS;
}

Tensor likeness_vectors(At at, const Tensor& seen, const AttentionCall& call) {
  if (at != At::v) return seen;
  // What stands before a text's own tokens (persistent vectors, a memory) is left out.
  return call.is_self() ? seen.slice(2, -call.x_BTD.size(1)) : seen.slice(2, call.ahead);
}

void DiversityOptions::describe(Fields& fields) {
  fields.add("on", on, "what of heads shall differ").one_of(likeness_places());
  fields.add("form", form, "how alike two heads are: cosine, its square, or the squared correlation over time")
      .one_of(likeness_forms());
  fields.add("penalty", penalty, "weight of the likeness of heads in the loss, in each layer").at_least(0);
}

std::unique_ptr<Tap> Diversity::observer(const AttentionCall& call, const std::vector<int64_t>&) {
  if (!is_training() || options_.penalty == 0) return nullptr;
  return std::make_unique<LikenessTap>(options_, call.site);
}

}  // namespace headlab
