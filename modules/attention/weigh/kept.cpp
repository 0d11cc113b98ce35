#include "modules/attention/weigh/kept.h"

#include <algorithm>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Parts of a dimension 1 put together: those of parts[i] stand at positions[i].
Tensor joined_at(const std::vector<Tensor>& parts, const std::vector<std::vector<int64_t>>& positions) {
  std::vector<int64_t> order;
  for (const auto& some : positions) order.insert(order.end(), some.begin(), some.end());
  std::vector<int64_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  return pick(parts.size() == 1 ? parts.front() : torch::cat(parts, 1), 1, place);
}

/// What stands at these positions, which rise, of dimension 1.
Tensor taken(const Tensor& x, const std::vector<int64_t>& positions) {
  return static_cast<int64_t>(positions.size()) == x.size(1) ? x : pick(x, 1, positions);
}

Tensor numbers_to(int64_t n, const Tensor& like) {
  return torch::arange(n, torch::dtype(torch::kLong).device(like.device()));
}

/// Packed heads over a cache. Only groups that some text asks are looked at: a token asks few.
Tensor over_cache(Weigh& weigh, const Tensor& q_BHnK, const Tensor& k_BGmK, const Tensor& v_BGmK, const GroupPart& part,
                  const KeptTokens& tokens, const Tensor& before_BG, const AttentionCall& call) {
  const auto n = q_BHnK.size(2), m = k_BGmK.size(2);
  const auto here_BG = tokens.held_BGT().sum(-1);
  const auto asked = here_BG.amax(0).to(torch::kCPU);
  std::vector<int64_t> groups;
  for (int64_t g = 0; g < asked.size(0); ++g)
    if (asked.const_data_ptr<int64_t>()[g] > 0) groups.push_back(g);
  const GroupPart of(groups, part.group_of);
  auto own = call;
  own.see = {};
  const auto last_BG1 = of.groups_of(before_BG).unsqueeze(-1);  // the last row that is seen, of each query
  const auto last_BGn =
      call.see.causal ? last_BG1 + numbers_to(n, q_BHnK) : last_BG1 + of.groups_of(here_BG).unsqueeze(-1) - 1;
  HeadPlan plan;
  plan.allowed_BHTS = pick(numbers_to(m, q_BHnK).le(last_BGn.unsqueeze(-1)), 1, of.group_of);
  const auto z = weigh.forward(of.heads_of(q_BHnK), of.groups_of(k_BGmK), of.groups_of(v_BGmK), of.group_of, plan, {},
                               own, /*from_start=*/false);
  if (of.heads.size() == part.heads.size()) return z;
  std::vector<int64_t> others;
  for (int64_t h = 0; h < q_BHnK.size(1); ++h)
    if (std::find(of.heads.begin(), of.heads.end(), h) == of.heads.end()) others.push_back(h);
  return joined_at({z, torch::zeros({z.size(0), static_cast<int64_t>(others.size()), n, z.size(3)}, z.options())},
                   {of.heads, others});
}

}  // namespace

GroupPart::GroupPart(std::vector<int64_t> of_groups, const std::vector<int64_t>& group_of_all)
    : groups(std::move(of_groups)) {
  for (std::size_t h = 0; h < group_of_all.size(); ++h) {
    const auto found = std::find(groups.begin(), groups.end(), group_of_all[h]);
    if (found == groups.end()) continue;
    heads.push_back(static_cast<int64_t>(h));
    group_of.push_back(found - groups.begin());
  }
}

Tensor GroupPart::groups_of(const Tensor& x_BGSK) const { return taken(x_BGSK, groups); }
Tensor GroupPart::heads_of(const Tensor& x_BHTK) const { return taken(x_BHTK, heads); }

KeptSplit KeptSplit::by_share(const std::vector<double>& kept_H, const std::vector<int64_t>& group_of) {
  std::vector<int64_t> some, all;
  for (std::size_t h = 0; h < group_of.size(); ++h) {
    auto& list = kept_H[h] < 1 ? some : all;
    if (std::find(list.begin(), list.end(), group_of[h]) == list.end()) list.push_back(group_of[h]);
  }
  for (auto* list : {&some, &all}) std::sort(list->begin(), list->end());
  return {{some, group_of}, {}, {all, group_of}};
}

KeptSplit KeptSplit::of_call(const Tensor& held_BGT, const std::vector<int64_t>& all_group_of) const {
  const auto most_G = held_BGT.sum(-1).amax(0).to(torch::kCPU);
  std::vector<int64_t> few, many;
  for (const auto group : packed.groups)
    (2 * most_G[group].item<int64_t>() <= held_BGT.size(2) ? few : many).push_back(group);
  return {{few, all_group_of}, {many, all_group_of}, whole};
}

KeptTokens::KeptTokens(const Tensor& held_BGT, std::optional<int64_t> rows) : held_(held_BGT) {
  const auto T = held_.size(2);
  rows_ = rows ? *rows : T == 1 ? 1 : std::max<int64_t>(held_.sum(-1).max().item<int64_t>(), 1);
  tokens_ = held_.reshape(-1).nonzero().squeeze(-1);
  if (T == 1 && rows_ == 1) {  // a step of decoding
    slots_ = tokens_;
    places_ = torch::zeros_like(held_, tokens_.options());
    return;
  }
  const auto unit = torch::div(tokens_, T, "floor");
  slots_ = unit * rows_ + (held_.cumsum(-1) - 1).reshape(-1).index_select(0, tokens_);
  places_ = torch::zeros({held_.size(0) * held_.size(1) * rows_}, tokens_.options())
                .index_copy(0, slots_, tokens_ - unit * T)
                .view({held_.size(0), held_.size(1), rows_});
}

Tensor KeptTokens::real_BGn() const { return numbers_to(rows_, held_).lt(held_.sum(-1, /*keepdim=*/true)); }

Tensor KeptTokens::of_texts(const Tensor& x_BTD) const {
  const auto first_B = numbers_to(x_BTD.size(0), held_) * x_BTD.size(1);
  const auto rows_GBn =
      places_.transpose(0, 1) + first_B.unsqueeze(-1);  // groups first: each is one product of matrices
  return x_BTD.flatten(0, 1).index_select(0, rows_GBn.flatten()).unflatten(0, rows_GBn.sizes()).transpose(0, 1);
}

Tensor KeptTokens::of_units(const Tensor& x_BGTK) const {
  if (rows_ == 1 && x_BGTK.size(2) == 1) return x_BGTK;
  return x_BGTK.gather(2, places_.unsqueeze(-1).expand({-1, -1, -1, x_BGTK.size(3)}));
}

Tensor KeptTokens::back(const Tensor& x_BGnK) const {
  const auto rows = x_BGnK.flatten(0, 2).index_select(0, slots_);
  return torch::zeros({held_.numel(), x_BGnK.size(3)}, rows.options())
      .index_copy(0, tokens_, rows)
      .unflatten(0, held_.sizes());
}

Tensor KeptTokens::sum(const Tensor& x_BGnD) const {
  const auto B = held_.size(0), G = held_.size(1), T = held_.size(2);
  const auto unit = torch::div(slots_, rows_, "floor"), b = torch::div(unit, G, "floor");
  const auto slot_in_GBn = ((unit - b * G) * B + b - unit) * rows_ + slots_;  // as of_texts() lays texts out
  const auto rows = x_BGnD.transpose(0, 1).flatten(0, 2).index_select(0, slot_in_GBn);
  return torch::zeros({B * T, x_BGnD.size(3)}, rows.options())
      .index_add(0, tokens_ - (unit - b) * T, rows)
      .unflatten(0, {B, T});
}

void KeptTokens::add_to(std::vector<Tensor>& caches, const Tensor& before_BG, const std::vector<Tensor>& more) const {
  const auto had = caches.front().size(2), room = std::max((before_BG + held_.sum(-1)).max().item<int64_t>(), had);
  const auto unit = rows_ == 1 ? slots_ : torch::div(slots_, rows_, "floor");
  const auto to = before_BG.flatten().index_select(0, unit) + unit * (room - rows_) + slots_;
  for (std::size_t i = 0; i < more.size(); ++i) {
    auto& cache = caches[i];
    // What nobody else holds is written in place.
    const bool own = room == had && cache.is_contiguous() && cache.use_count() == 1 &&
                     cache.storage().use_count() == 1 && !at::GradMode::is_enabled();
    if (!own) cache = torch::constant_pad_nd(cache, {0, 0, 0, room - had}).contiguous();
    cache.flatten(0, 2).index_copy_(0, to, more[i].flatten(0, 2).index_select(0, slots_));
  }
}

Tensor kept_before(const State* state, const GroupPart& part) {
  if (!state || state->empty()) return {};
  return part.groups_of(state->stored.back().squeeze(-1)).sum(-1);
}

void append_kept(State& state, const KeptSplit& split, const std::vector<Tensor>& stored) {
  const auto held_BGT = stored.back().squeeze(-1);
  const KeptTokens tokens(split.packed.groups_of(held_BGT));
  std::vector<Tensor> packed, whole;
  for (std::size_t i = 0; i < 2; ++i) {
    packed.push_back(tokens.of_units(split.packed.groups_of(stored[i])));
    if (!split.whole.empty()) whole.push_back(split.whole.groups_of(stored[i]));
  }
  append_kept(state, tokens, kept_before(&state, split.packed), packed, whole, held_BGT);
}

void append_kept(State& state, const KeptTokens& tokens, const Tensor& before_BG, const std::vector<Tensor>& packed_kv,
                 const std::vector<Tensor>& whole_kv, const Tensor& held_BGT) {
  auto& stored = state.stored;
  std::vector<Tensor> by_token = whole_kv;
  by_token.push_back(held_BGT.unsqueeze(-1));
  if (!before_BG.defined()) {
    for (const auto& packed : packed_kv) stored.push_back(packed.contiguous());  // holds nothing else along
    stored.insert(stored.end(), by_token.begin(), by_token.end());
    return;
  }
  tokens.add_to(stored, before_BG, packed_kv);
  for (std::size_t i = 0; i < by_token.size(); ++i) stored[i + 2] = torch::cat({stored[i + 2], by_token[i]}, 2);
}

std::vector<Tensor> unpacked(const State& state, const KeptSplit& split) {
  const auto& stored = state.stored;
  const KeptTokens tokens(split.packed.groups_of(stored.back().squeeze(-1)), stored[0].size(2));
  std::vector<Tensor> kv;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto packed = tokens.back(stored[i]);
    kv.push_back(split.whole.empty() ? packed
                                     : joined_at({packed, stored[i + 2]}, {split.packed.groups, split.whole.groups}));
  }
  kv.push_back(stored.back());
  return kv;
}

Tensor weigh_packed(Weigh& weigh, const Tensor& q_BHnK, const Tensor& k_BGmK, const Tensor& v_BGmK,
                    const GroupPart& part, const KeptTokens& tokens, const Tensor& before_BG,
                    const AttentionCall& call) {
  if (before_BG.defined()) return over_cache(weigh, q_BHnK, k_BGmK, v_BGmK, part, tokens, before_BG, call);
  auto own = call;
  own.see = {};
  own.see.causal = call.see.causal;
  HeadPlan plan;
  if (const auto& keys = call.see.key_mask_BS; keys.defined())
    plan.allowed_BHTS =
        keys.unsqueeze(1).expand_as(tokens.held_BGT()).gather(-1, tokens.places_BGn()).logical_and(tokens.real_BGn());
  else if (!call.see.causal)  // rows of nothing stand behind the tokens, which do not see them in a causal attention
    plan.allowed_BHTS = tokens.real_BGn();
  if (plan.allowed_BHTS.defined()) plan.allowed_BHTS = pick(plan.allowed_BHTS, 1, part.group_of).unsqueeze(2);
  return weigh.forward(q_BHnK, k_BGmK, v_BGmK, part.group_of, plan, {}, own, /*from_start=*/true);
}

Tensor weigh_whole(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                   const GroupPart& part, const Tensor& held_BGT, const HeadPlan& plan, const AttentionCall& call) {
  HeadPlan own;
  if (!plan.window_H.empty())
    for (const auto head : part.heads) own.window_H.push_back(plan.window_H[static_cast<std::size_t>(head)]);
  if (held_BGT.defined()) {
    const auto held_BHT = pick(held_BGT, 1, part.group_of);
    own.allowed_BHTS = held_BHT.unsqueeze(2).logical_and(held_BHT.unsqueeze(3));
  }
  return weigh.forward(q_BHTK, k_BGSK, v_BGSK, part.group_of, own, {}, call,
                       !call.state || k_BGSK.size(2) == q_BHTK.size(2));
}

Tensor in_head_order(const std::vector<Tensor>& parts, const std::vector<const GroupPart*>& of) {
  std::vector<std::vector<int64_t>> heads;
  for (const auto* part : of) heads.push_back(part->heads);
  return joined_at(parts, heads);
}

bool can_pack(const Weigh& weigh, const HeadPlan& plan, const AttentionCall& call) {
  return !recording() && call.ahead == 0 && !plan.allowed_BHTS.defined() && !call.see.allowed_BTS.defined() &&
         weigh.fusable(call.site, call.run);
}

bool has_window(const GroupPart& part, const HeadPlan& plan) {
  return !plan.window_H.empty() && std::any_of(part.heads.begin(), part.heads.end(), [&](int64_t head) {
    return plan.window_H[static_cast<std::size_t>(head)] > 0;
  });
}

Tensor attend_to_kept(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                      const std::vector<int64_t>& group_of, const Tensor& held_BGS, const KeptSplit& by_share,
                      const HeadPlan& plan, const AttentionCall& call) {
  if (!can_pack(weigh, plan, call) || q_BHTK.size(2) < shortest_packed_scores) return {};
  const auto split = by_share.of_call(held_BGS, group_of);
  if (split.packed.empty() || has_window(split.packed, plan)) return {};
  std::vector<Tensor> z;
  std::vector<const GroupPart*> of;
  {
    const auto& part = split.packed;
    const KeptTokens of_groups(part.groups_of(held_BGS)),
        of_heads(pick(of_groups.held_BGT(), 1, part.group_of), of_groups.rows());
    z.push_back(of_heads.back(weigh_packed(weigh, of_heads.of_units(part.heads_of(q_BHTK)),
                                           of_groups.of_units(part.groups_of(k_BGSK)),
                                           of_groups.of_units(part.groups_of(v_BGSK)), part, of_groups, {}, call)));
    of.push_back(&part);
  }
  for (const auto* part : {&split.masked, &split.whole}) {
    if (part->empty()) continue;
    z.push_back(weigh_whole(weigh, part->heads_of(q_BHTK), part->groups_of(k_BGSK), part->groups_of(v_BGSK), *part,
                            part == &split.masked ? part->groups_of(held_BGS) : Tensor(), plan, call));
    of.push_back(part);
  }
  return in_head_order(z, of);
}

}  // namespace headlab
