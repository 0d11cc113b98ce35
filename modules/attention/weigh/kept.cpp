#include "modules/attention/weigh/kept.h"

#include <algorithm>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Heads of some groups: their positions, and the group of each among these groups.
struct Part {
  std::vector<int64_t> groups, heads, group_of;
};

Part part_of(const std::vector<int64_t>& groups, const std::vector<int64_t>& group_of) {
  Part part{groups, {}, {}};
  for (std::size_t h = 0; h < group_of.size(); ++h) {
    const auto found = std::find(groups.begin(), groups.end(), group_of[h]);
    if (found == groups.end()) continue;
    part.heads.push_back(static_cast<int64_t>(h));
    part.group_of.push_back(found - groups.begin());
  }
  return part;
}

/// The tokens at places_BHN of x_BHTK.
Tensor gathered(const Tensor& x_BHTK, const Tensor& rows_N) {
  return x_BHTK.flatten(0, 2).index_select(0, rows_N).unflatten(0, {x_BHTK.size(0), x_BHTK.size(1), -1});
}

/// Numbers of the rows at places_BHN of a tensor [B H T, K].
Tensor rows_of(const Tensor& places_BHN, int64_t T) {
  const auto first = torch::arange(places_BHN.size(0) * places_BHN.size(1), places_BHN.options()) * T;
  return (places_BHN.flatten(0, 1) + first.unsqueeze(-1)).flatten();
}

Tensor packed(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGTK, const Tensor& v_BGTK, const std::vector<int64_t>& group_of,
              const Tensor& held_BGT, int64_t longest, const AttentionCall& call) {
  const auto T = q_BHTK.size(2);
  const auto places_BGN = std::get<1>(held_BGT.to(torch::kByte).sort(/*stable=*/true, -1, /*descending=*/true)).narrow(-1, 0, longest);
  const auto real_BGN = held_BGT.gather(-1, places_BGN);
  const auto places_BHN = pick(places_BGN, 1, group_of), real_BHN = pick(real_BGN, 1, group_of);
  const auto of_groups = rows_of(places_BGN, T), of_heads = rows_of(places_BHN, T);
  auto own = call;
  own.see = {};
  own.see.causal = call.see.causal;
  HeadPlan plan;
  if (const auto& keys = call.see.key_mask_BS; keys.defined())
    plan.allowed_BHTS = keys.unsqueeze(1).expand_as(held_BGT).gather(-1, places_BGN).logical_and(real_BGN);
  else if (!call.see.causal)  // what pads a head stands behind its tokens, which do not see it in a causal attention
    plan.allowed_BHTS = real_BGN;
  if (plan.allowed_BHTS.defined()) plan.allowed_BHTS = pick(plan.allowed_BHTS, 1, group_of).unsqueeze(2);
  const auto z_BHNK = weigh.forward(gathered(q_BHTK, of_heads), gathered(k_BGTK, of_groups), gathered(v_BGTK, of_groups), group_of, plan, {},
                                    own, /*from_start=*/true);
  const auto rows = z_BHNK.masked_fill(real_BHN.logical_not().unsqueeze(-1), 0).flatten(0, 2);
  const auto z = torch::zeros({q_BHTK.size(0) * q_BHTK.size(1) * T, v_BGTK.size(3)}, rows.options());
  return z.index_copy(0, of_heads, rows).unflatten(0, {q_BHTK.size(0), q_BHTK.size(1), T});
}

}  // namespace

Tensor attend_to_kept(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK, const std::vector<int64_t>& group_of,
                      const Tensor& held_BGS, const HeadPlan& plan, const AttentionCall& call) {
  if (recording() || q_BHTK.size(2) < shortest_packed || call.ahead > 0 || plan.allowed_BHTS.defined() || !plan.window_H.empty() ||
      call.see.allowed_BTS.defined() || !weigh.fusable(call.site, call.run))
    return {};
  const auto T = q_BHTK.size(2);
  const auto longest_G = held_BGS.sum(-1).amax(0).to(torch::kCPU);
  std::vector<int64_t> few, many;
  int64_t longest = 1;
  for (int64_t group = 0; group < longest_G.size(0); ++group) {
    const auto kept = longest_G[group].item<int64_t>();
    (2 * kept <= T ? few : many).push_back(group);
    if (2 * kept <= T) longest = std::max(longest, kept);
  }
  if (few.empty()) return {};
  const auto of_few = part_of(few, group_of), of_many = part_of(many, group_of);
  const auto take = [](const Tensor& x, const std::vector<int64_t>& positions) {
    return static_cast<int64_t>(positions.size()) == x.size(1) ? x : pick(x, 1, positions);
  };
  auto z = packed(weigh, take(q_BHTK, of_few.heads), take(k_BGSK, few), take(v_BGSK, few), of_few.group_of, take(held_BGS, few), longest, call);
  if (many.empty()) return z;
  const auto held_BHS = pick(take(held_BGS, many), 1, of_many.group_of);
  HeadPlan masked;
  masked.allowed_BHTS = held_BHS.unsqueeze(2).logical_and(held_BHS.unsqueeze(3));
  z = torch::cat({z, weigh.forward(take(q_BHTK, of_many.heads), take(k_BGSK, many), take(v_BGSK, many), of_many.group_of, masked, {}, call, true)}, 1);
  auto order = of_few.heads;
  order.insert(order.end(), of_many.heads.begin(), of_many.heads.end());
  std::vector<int64_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  return pick(z, 1, place);
}

}  // namespace headlab
