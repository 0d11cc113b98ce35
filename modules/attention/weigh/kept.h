#pragma once

#include <optional>
#include <vector>

#include "modules/attention/weigh/weigh.h"

/// Heads that keep some tokens alone (HeadPlan::held_BGS), over these: what a group keeps of T tokens stands in n rows,
/// in order, n the most that any of these groups keeps of any text, and z is 0 for the other tokens.
namespace headlab {

/// Texts shorter than this are masked, where nothing is cached. (Measured on a CPU at widths from 64 to 512.)
inline constexpr int64_t shortest_packed = 64;
/// The same where queries, keys and values of all tokens are there already.
inline constexpr int64_t shortest_packed_scores = 256;

/// Where each token stands among those that its group keeps; -1 before the first.
inline Tensor places_among(const Tensor& held_BGS) { return held_BGS.to(torch::kLong).cumsum(-1) - 1; }

/// Some of an attention's groups and the heads that read them, by position.
struct GroupPart {
  GroupPart() = default;
  GroupPart(std::vector<int64_t> of_groups, const std::vector<int64_t>& group_of_all);
  std::vector<int64_t> groups, heads, group_of;  // group_of: for each of `heads` its place among `groups`
  bool empty() const { return heads.empty(); }
  Tensor groups_of(const Tensor& x_BGSK) const;
  Tensor heads_of(const Tensor& x_BHTK) const;
};

/// How groups are computed: over kept tokens, as if they kept all with a mask, or over all without.
struct KeptSplit {
  GroupPart packed, masked, whole;
  /// By what is known before there are data (Gate::kept_H): nothing is masked.
  static KeptSplit by_share(const std::vector<double>& kept_H, const std::vector<int64_t>& group_of);
  /// Of these, groups that keep more than half of some text of a call are masked.
  KeptSplit of_call(const Tensor& held_BGT, const std::vector<int64_t>& group_of) const;
};

/// The tokens that units (groups or heads) keep of T.
class KeptTokens {
 public:
  /// `rows`: n; absent: the most that any keeps.
  explicit KeptTokens(const Tensor& held_BGT, std::optional<int64_t> rows = std::nullopt);
  int64_t rows() const { return rows_; }
  const Tensor& held_BGT() const { return held_; }
  const Tensor& places_BGn() const { return places_; }  // long, among T; of rows without a token: 0
  Tensor real_BGn() const;                              // bool: rows with a token
  Tensor of_texts(const Tensor& x_BTD) const;           // x_BGnD
  Tensor of_units(const Tensor& x_BGTK) const;          // x_BGnK
  /// x_BGnK at the tokens' places, zeros elsewhere: [B,G,T,K].
  Tensor back(const Tensor& x_BGnK) const;
  /// The sum over units, at the tokens' places: [B,T,D].
  Tensor sum(const Tensor& x_BGnD) const;
  /// Puts what the tokens have in more[i], [B,G,n,K], behind the `before_BG` rows that are taken of caches[i],
  /// [B,G,m,K], which grow to what the fullest needs.
  void add_to(std::vector<Tensor>& caches, const Tensor& before_BG, const std::vector<Tensor>& more) const;

 private:
  int64_t rows_;
  Tensor held_, places_, tokens_, slots_;  // of each kept token: its number among B*G*T, and among B*G*n
};

/// What a cache has of groups of which some keep some tokens alone:
///   {packed k_BGnK, v_BGnK, whole k_BGSK, v_BGSK, held_BGS1}          (without the whole ones where no group is whole)
/// How many tokens of a text a group has is the sum over held_BGS1. Rows behind these are of nothing.
/// stored: {k_BGTK, v_BGTK, held_BGT1} of all groups and T more tokens.
void append_kept(State& state, const KeptSplit& split, const std::vector<Tensor>& stored);
/// The same of keys and values as they are computed, packed and whole ones (none where no group is whole); before_BG:
/// kept_before() of the packed groups.
void append_kept(State& state, const KeptTokens& tokens, const Tensor& before_BG, const std::vector<Tensor>& packed_kv,
                 const std::vector<Tensor>& whole_kv, const Tensor& held_BGT);
/// {k_BGSK, v_BGSK, held_BGS1} of what append_kept() stored: keys and values that a group does not keep are zeros.
std::vector<Tensor> unpacked(const State& state, const KeptSplit& split);
/// How many tokens each of a part's groups has in the cache; [B,G], long. Undefined: there is none.
Tensor kept_before(const State* state, const GroupPart& part);

/// z_BHnK of packed heads over keys of packed groups: the first ones of a text where `before_BG` is undefined, else
/// behind as many. key_mask_BS: as Visibility's, of the first ones alone.
Tensor weigh_packed(Weigh& weigh, const Tensor& q_BHnK, const Tensor& k_BGmK, const Tensor& v_BGmK,
                    const GroupPart& part, const KeptTokens& tokens, const Tensor& before_BG,
                    const AttentionCall& call);
/// z_BHTK of heads that are masked, or whole; held_BGT undefined: whole.
Tensor weigh_whole(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                   const GroupPart& part, const Tensor& held_BGT, const HeadPlan& plan, const AttentionCall& call);
/// z of parts of the heads, in the order of the heads.
Tensor in_head_order(const std::vector<Tensor>& parts, const std::vector<const GroupPart*>& of);

/// Whether a call's heads can be packed: it needs no whole texts (a recording, taps of keys or weights, dropout of
/// weights, other masks for each query, keys ahead).
bool can_pack(const Weigh& weigh, const HeadPlan& plan, const AttentionCall& call);
/// Whether one of these heads has a window.
bool has_window(const GroupPart& part, const HeadPlan& plan);

/// Weigh::forward from the start of texts, with a mask of what groups keep, by n^2 pairs where that takes T^2.
/// Undefined, with nothing done: the call is one that the mask serves better.
Tensor attend_to_kept(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                      const std::vector<int64_t>& group_of, const Tensor& held_BGS, const KeptSplit& by_share,
                      const HeadPlan& plan, const AttentionCall& call);

}  // namespace headlab
