#pragma once

#include <memory>
#include <vector>

#include "modules/tensor/forward.h"

namespace headlab {

/// Which keys a query may attend to. All conditions must hold. The queries of a self-attention are the last T of the S
/// keys.
struct Visibility {
  bool causal = false;   // no key after the query
  Tensor key_mask_BS;    // bool, true: a real token; undefined: all are
  Tensor allowed_BTS;    // bool [B,T,S] or [T,S]; undefined: all
  Tensor query_mask_BT;  // bool, true: a real token; hides nothing: losses and statistics leave the others out
};

/// What a cache keeps of the tokens an attention has seen: tensors whose first dimension is the text and whose second
/// to last is the token ([B,G,S,K]). What is stored may be narrower than what is read. Where groups keep some tokens
/// alone (HeadPlan::held_BGS), keys and values may have rows for these alone (weigh/kept.h); the last tensor has one
/// for each token seen, always.
struct State {
  std::vector<Tensor> stored;
  bool fixed = false;  // the memory of a cross-attention: projected once, never appended to
  bool empty() const { return stored.empty(); }
  int64_t length() const { return stored.empty() ? 0 : stored.back().size(-2); }
  void append(const std::vector<Tensor>& more);
  void reorder(const Tensor& rows_B);  // row b becomes what row rows_B[b] was (beam search)
};

/// One call of an attention (or of another token mixer).
struct AttentionCall {
  Site site;
  Tensor x_BTD;         // after the norm
  Tensor memory_BSD;    // the same tensor as x for self-attention; may be undefined where `state` is fixed and filled
  Tensor q_pos, k_pos;  // positions, long: [T] or [B,T]; k_pos is of the memory given, not of what is cached
  Visibility see;
  State* state = nullptr;  // nullptr: no cache
  Forward& run;
  /// Keys that stand before the context's and that every query sees, whatever is hidden (the adapter `persistent`). The
  /// walk sets it; taps see them as the first keys and values, and as the first columns of scores and weights.
  int64_t ahead = 0;
  bool goes_on = false;  // of a self-attention without a cache: the memory begins before x, whose tokens are its last
  bool is_self() const { return memory_BSD.is_same(x_BTD); }
};

/// What is to be computed: the gates write it before anything is projected.
struct HeadPlan {
  Tensor chosen_BTk;              // long: the experts (positions) of each token; undefined: every head for every token
  Tensor weight_BTk;              // their weights
  std::vector<int64_t> window_H;  // keys a head sees, itself included; empty: no window; 0: none for that head
  Tensor allowed_BHTS;            // bool, beside what the call says: true = this head may attend; undefined: all
  /// bool: the tokens of the memory given that a group keeps, in a cache too; undefined: all. What the gate that says
  /// so does in weigh() is to multiply each token's output of a head by a number, which is 0 where the group does not
  /// keep the token.
  Tensor held_BGS;
  bool own_places = false;  // each group counts positions by the tokens that it keeps (held_BGS), for what rotates
};

/// The sizes of one attention, shared by its slots. Removing heads changes it; original head numbers stay.
struct AttentionShape {
  int64_t width = 0;         // D
  int64_t memory_width = 0;  // width of what keys and values are made from
  int64_t head_width = 0;    // K of queries and keys
  int64_t value_width = 0;   // K_v, of values and of heads' outputs
  bool cross = false;
  std::vector<int64_t> heads;     // original numbers of the heads that are there
  std::vector<int64_t> groups;    // original numbers of the key/value groups that are there
  std::vector<int64_t> group_of;  // for each head (position): its group (position)
  int64_t original_heads = 0;
  bool groups_shared = false;  // every head reads every group: none goes while any head is left
  int64_t H() const { return static_cast<int64_t>(heads.size()); }
  int64_t G() const { return static_cast<int64_t>(groups.size()); }
};
using Shape = std::shared_ptr<AttentionShape>;

/// Query-key pairs that one head sees: the T queries are the last of S keys where the attention is causal or has a
/// window. A window of 0 is none; causal: key j of query i iff 0 <= i - j (< window); otherwise |i - j| < window.
int64_t seen_pairs(int64_t T, int64_t S, bool causal, int64_t window);

/// Gives `shape` `groups` original key/value groups (a divisor of its original heads), less those that no head left
/// reads (all stay where groups are shared).
void set_groups(AttentionShape& shape, int64_t groups);

/// Leaves the heads at these positions, in this order, and the groups that they read. Returns the positions of those
/// groups.
std::vector<int64_t> keep_heads(AttentionShape& shape, const std::vector<int64_t>& positions);

/// One call of the kernel: heads of equal window, over groups of equal ratio.
struct HeadBlock {
  std::vector<int64_t> heads;  // positions among q's heads
  Tensor q_BHTK, k_BGSK, v_BGSK;
  int64_t window = 0;  // 0: none
  Tensor bias;         // added to the scores, broadcastable to [B,H,T,S]; undefined: none
  Tensor allowed;      // bool [B,H,T,S], true = may attend; undefined: all
};

}  // namespace headlab
