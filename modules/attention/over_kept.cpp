#include <algorithm>

#include "modules/attention/attention.h"
#include "modules/attention/observers.h"
#include "modules/attention/weigh/kept.h"
#include "modules/tensor/torch.h"

/// The walk of an attention whose groups keep some tokens alone (HeadPlan::held_BGS), over these.
namespace headlab {
namespace {

/// Of positions [T] or [B,T], those of the tokens that groups keep: [B,G,n].
Tensor of_kept(const Tensor& positions, const KeptTokens& tokens) {
  const auto by_text = positions.dim() == 1 ? positions.unsqueeze(0) : positions;
  return by_text.unsqueeze(1).expand_as(tokens.held_BGT()).gather(-1, tokens.places_BGn());
}

/// Whether all heads turn alike, so that some can be turned without the others.
bool turns_alike(const Position& position) {
  HeadAxes axes;
  position.axes(axes);
  return axes.all().empty();
}

}  // namespace

std::vector<double> Attention::kept_H() const {
  for (const auto& gate : gates_)
    if (auto kept_H = gate->kept_H(); !kept_H.empty()) return kept_H;
  return {};
}

KeptSplit Attention::kept_split() const { return KeptSplit::by_share(kept_H(), shape_->group_of); }

bool Attention::packs_kept() const {
  const auto kept = kept_H();
  if (kept.empty()) return false;
  const auto split = KeptSplit::by_share(kept, shape_->group_of);
  return !recording() && adapters_.empty() && !project->reads_stored() && !project->cache_numbers() &&
         !position->has_bias() && !split.packed.empty() && (split.whole.empty() || turns_alike(*position));
}

Tensor Attention::over_kept(const HeadPlan& plan, const AttentionCall& call) {
  auto& run = call.run;
  const auto& x = call.x_BTD;
  const auto T = x.size(1);
  const Observers observers(gates_, call, shape_->group_of);
  for (const auto at : {At::q, At::k, At::v})
    if (run.wants(at, call.site)) return {};
  auto split = kept_split();
  const auto before_BG = kept_before(call.state, split.packed);
  if (!call.is_self() || !can_pack(*weigh, plan, call) || has_window(split.packed, plan)) return {};
  if (before_BG.defined() ? call.see.key_mask_BS.defined() : !call.state && T < shortest_packed) return {};
  if (!call.state) split = split.of_call(plan.held_BGS, shape_->group_of);
  const auto &packed = split.packed, &masked = split.masked, &whole = split.whole;
  if (packed.empty() || !(masked.empty() || turns_alike(*position))) return {};
  const KeptTokens of_groups(packed.groups_of(plan.held_BGS));
  const auto n = of_groups.rows();
  const bool one_each =
      packed.heads.size() == packed.groups.size() && std::is_sorted(packed.group_of.begin(), packed.group_of.end());
  const auto of_heads = one_each ? of_groups : KeptTokens(pick(of_groups.held_BGT(), 1, packed.group_of), n);

  // Queries, keys and values of each part: of kept tokens alone, where that is less work.
  const bool few = 4 * n <= 3 * T;
  std::vector<Tensor> all, of_packed, of_masked, of_whole;
  const auto of_all = [&](const GroupPart& part) -> std::vector<Tensor> {
    if (all.empty()) all = project->all(x, plan);
    return {part.heads_of(all[0]), part.groups_of(all[1]), part.groups_of(all[2])};
  };
  const auto turn = [&](std::vector<Tensor>& qkv, const GroupPart& part, const Tensor& positions) {
    qkv[0] = position->query(qkv[0], positions.dim() == 3 ? pick(positions, 1, part.group_of) : positions);
    qkv[1] = position->rotate(qkv[1], positions);
  };
  const auto places = [&](int64_t count) { return torch::arange(count, call.q_pos.options()); };
  if (few) of_packed = project->of_kept(of_groups.of_texts(x), packed.groups);
  if (of_packed.empty()) {
    of_packed = of_all(packed);
    for (std::size_t i = 0; i < 3; ++i) of_packed[i] = (i == 0 ? of_heads : of_groups).of_units(of_packed[i]);
  }
  if (!plan.own_places)
    turn(of_packed, packed, of_kept(call.q_pos, of_groups));
  else
    turn(of_packed, packed, before_BG.defined() ? before_BG.unsqueeze(-1) + places(n) : places(n));
  const auto of_all_tokens = [&](const GroupPart& part, const Tensor& own) {
    const auto groups = static_cast<int64_t>(part.groups.size());
    std::vector<Tensor> qkv;
    if (all.empty()) qkv = project->of_kept(x.unsqueeze(1).expand({-1, groups, -1, -1}), part.groups);
    if (qkv.empty()) qkv = of_all(part);
    turn(qkv, part, plan.own_places ? own : call.q_pos);
    return qkv;
  };
  if (!masked.empty()) of_masked = of_all_tokens(masked, places_among(masked.groups_of(plan.held_BGS)));
  if (!whole.empty()) of_whole = of_all_tokens(whole, places(T) + (call.state ? call.state->length() : 0));
  if (call.state) {
    const std::vector<Tensor> none, kv(of_packed.begin() + 1, of_packed.end());
    append_kept(*call.state, of_groups, before_BG, kv,
                whole.empty() ? none : std::vector<Tensor>(of_whole.begin() + 1, of_whole.end()), plan.held_BGS);
    const auto& stored = call.state->stored;
    std::copy_n(stored.begin(), 2, of_packed.begin() + 1);
    if (!whole.empty()) std::copy_n(stored.begin() + 2, 2, of_whole.begin() + 1);
  }

  const auto z_BHnK =
      weigh_packed(*weigh, of_packed[0], of_packed[1], of_packed[2], packed, of_groups, before_BG, call);
  const bool looked_at = run.wants(At::z, call.site) || run.wants(At::o, call.site);
  if (few && masked.empty() && whole.empty() && gates_.size() == 1 &&
      !looked_at) {  // the mix, too, of kept tokens alone
    const auto ones_BHT1 = torch::ones({x.size(0), shape_->H(), T, 1}, z_BHnK.options());
    const auto weighed = z_BHnK * of_heads.of_units(gates_.front()->weigh(ones_BHT1, plan, call));
    const auto o_BHnD = mix->per_head(scaled(weighed, plan, call));
    if (o_BHnD.defined())
      return run.see(At::y, call.site, of_heads.sum(o_BHnD) + mix->nothing().to(o_BHnD.scalar_type()), &call);
  }
  std::vector<Tensor> z{of_heads.back(z_BHnK)};
  std::vector<const GroupPart*> parts{&packed};
  const auto add = [&](const GroupPart& part, const std::vector<Tensor>& qkv, const Tensor& held_BGT) {
    if (part.empty()) return;
    z.push_back(weigh_whole(*weigh, qkv[0], qkv[1], qkv[2], part, held_BGT, plan, call));
    parts.push_back(&part);
  };
  add(masked, of_masked, masked.groups_of(plan.held_BGS));
  add(whole, of_whole, {});
  return output(in_head_order(z, parts), plan, call);
}

}  // namespace headlab
