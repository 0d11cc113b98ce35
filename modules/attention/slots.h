#pragma once

#include "modules/attention/call.h"
#include "modules/tensor/axes.h"
#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/torch.h"

/// The slots of an attention: project -> (adapters) -> position -> weigh -> gates -> mix. An entry is one class in its
/// slot's folder and one line in that folder's registry.cpp.
namespace headlab {

struct AttentionAround;  // rules.h

/// What is known of a plan before there are data: work is counted from it.
struct HeadOutline {
  int64_t slots = 0;              // heads that each token gets
  std::vector<int64_t> window_H;  // as HeadPlan's
};

// flops(...): floating-point operations of the products of matrices in one pass over one text, a multiply-add counted
// as 2. What is done element by element (norms, activations, softmax, biases) is left out.

/// Queries, and what a cache stores of keys and values.
struct Project : torch::nn::Module, Initialised {
  /// q_BHTK; where the plan chose heads token by token, the H slots of a token are its chosen ones: q_BkTK.
  virtual Tensor query(const Tensor& x_BTD, const HeadPlan& plan) = 0;
  /// {k_BGSK, v_BGSK}
  virtual std::vector<Tensor> remember(const Tensor& memory_BSD) = 0;
  /// q of a self-attention and what remember() gives; entries that can do it in one product do.
  virtual std::vector<Tensor> all(const Tensor& x_BTD, const HeadPlan& plan) {
    auto all = remember(x_BTD);
    all.insert(all.begin(), query(x_BTD, plan));
    return all;
  }
  /// {q_BHnK, k_BGnK, v_BGnK} of tokens that each of these groups (positions) keeps, x_BGnD; the heads are those that
  /// read them, in their order. Empty: it can't.
  virtual std::vector<Tensor> of_kept(const Tensor& /*x_BGnD*/, const std::vector<int64_t>& /*groups*/) { return {}; }
  /// Whether keys and values are made from what a cache stores: then read() does it after the cache, and so do
  /// Adapter::store() and the position. Otherwise remember() begins with {k_BGSK, v_BGSK}, cached as position left
  /// them.
  virtual bool reads_stored() const { return false; }
  /// {k_BGSK, v_BGSK} of what remember() gave, of all tokens that are cached.
  virtual std::vector<Tensor> read(const std::vector<Tensor>& stored) { return {stored[0], stored[1]}; }
  /// Added to the scores, of what is stored (remember() may give more than keys and values): [B,H,1,S]; undefined:
  /// none.
  virtual Tensor bias(const std::vector<Tensor>& /*stored*/) { return {}; }
  /// Whether a pass made now would send gradients through bias().
  virtual bool learns_bias() const { return false; }
  /// Numbers that a cache keeps for each token; nothing: those of k_BGSK and v_BGSK.
  virtual std::optional<int64_t> cache_numbers() const { return std::nullopt; }
  /// Multiplies maps [K,K] into the matrices that make queries, keys and values (an undefined one: none): x W_h becomes
  /// x W_h M. False: it can't, and nothing has changed.
  virtual bool absorb(const std::vector<Tensor>& /*maps_qkv*/) { return false; }
  virtual void axes(HeadAxes axes) const = 0;
  /// Called before all heads but those at these positions are removed, and before the shape knows: what axes() can't
  /// say of removal, where units of keys and values are not the shape's groups.
  virtual void keep(const std::vector<int64_t>& /*positions*/) {}
  /// T tokens get queries for `slots` heads each, S tokens keys and values.
  virtual int64_t flops(int64_t T, int64_t S, int64_t slots) const = 0;
};

/// Changes q, k or v between projection and weighing: queries before position, keys and values before position and
/// cache (store) or after both (expand).
struct Adapter : torch::nn::Module, Initialised {
  virtual Tensor query(Tensor q_BHTK) { return q_BHTK; }
  virtual std::vector<Tensor> store(std::vector<Tensor> kv) { return kv; }
  /// The maps [K,K] of queries, keys and values, where it is no more than that (undefined: left as it is); empty: it is
  /// more.
  virtual std::vector<Tensor> maps() const { return {}; }
  virtual std::vector<Tensor> expand(std::vector<Tensor> kv) { return kv; }
  /// For each head the group it reads after expand().
  virtual std::vector<int64_t> group_of(std::vector<int64_t> before) const { return before; }
  /// Keys that expand() puts before the others, for every query to see.
  virtual int64_t ahead() const { return 0; }
  /// Called in each pass in training mode: a loss of its own goes to call.run.aux.
  virtual void add_loss(const AttentionCall&) {}
  virtual void axes(HeadAxes) const {}
  virtual int64_t flops(int64_t /*T*/, int64_t /*S*/) const { return 0; }
};

/// Rotates q and k by their positions, or gives a bias to the scores.
struct Position : torch::nn::Module {
  /// Of keys (by group), and where query() says nothing else, of queries. positions [T], [B,T] or [B,H,T].
  virtual Tensor rotate(Tensor x_BHTK, const Tensor& /*positions*/) { return x_BHTK; }
  /// What is compared with the keys: the rotated query, where nothing else is said.
  virtual Tensor query(Tensor q_BHTK, const Tensor& positions) { return rotate(std::move(q_BHTK), positions); }
  /// Whether bias() gives one.
  virtual bool has_bias() const { return false; }
  /// Added to the scores. q_BHTK: what query() gave, or what a tap put in its place; q_pos [T] or [B,T], k_pos (of all
  /// keys, cached ones too) [S] or [B,S] -> [1,H,T,S] or [B,H,T,S].
  virtual Tensor bias(const Tensor& /*q_BHTK*/, const Tensor& /*q_pos*/, const Tensor& /*k_pos*/) { return {}; }
  /// Whether a pass made now would send gradients through the bias: LibTorch's fused kernel takes no such bias.
  virtual bool learns_bias() const { return false; }
  virtual void axes(HeadAxes) const {}
  /// T queries of `slots` heads, S keys.
  virtual int64_t flops(int64_t /*T*/, int64_t /*S*/, int64_t /*slots*/) const { return 0; }
};

/// Chooses heads before they are computed, and weighs z after. A list: gates may stand in series.
struct Gate : torch::nn::Module, Initialised {
  virtual void plan(HeadPlan&, const AttentionCall&) {}
  virtual Tensor weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall&) { return z_BHTK; }
  /// What must be seen of this pass beside x and z: a tap of q, k, v, scores, weights or z that lives for this call
  /// alone (one that wants scores or weights makes the call leave the fused kernel); nullptr: nothing. `group_of`: for
  /// each head the group of k and v that it reads.
  virtual std::unique_ptr<Tap> observer(const AttentionCall&, const std::vector<int64_t>& /*group_of*/) {
    return nullptr;
  }
  virtual void axes(HeadAxes) const {}
  /// What is known of plan() before there are data.
  virtual void outline(HeadOutline&) const {}
  virtual int64_t flops(int64_t /*T*/) const { return 0; }
  /// Whether plan() chooses heads token by token.
  virtual bool routes() const { return false; }
  /// For each head (position) the share of tokens that it keeps (HeadPlan::held_BGS) where all heads that tokens choose
  /// from keep equally many: such a head makes queries, keys and values of these tokens, and compares them with each
  /// other. Empty: heads keep all.
  virtual std::vector<double> kept_H() const { return {}; }
  /// Heads (positions) that this gate has closed for good at evaluation; a prune action may remove them.
  virtual std::vector<int64_t> closed() const { return {}; }
  /// Called before all heads but those at these positions are removed: what axes() can't say of removal.
  virtual void keep(const std::vector<int64_t>& /*positions*/) {}
  void draw(const std::function<at::Generator(const std::string&)>&) override {}
};

/// z_BHTK -> y_BTD.
struct Mix : torch::nn::Module, Initialised {
  virtual Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) = 0;
  /// o_BHTD, each head's share of y without the bias; undefined where y is not a sum over heads.
  virtual Tensor per_head(const Tensor& z_BHTK) = 0;
  /// y where no head is left: the bias alone, or zeros; [D].
  virtual Tensor nothing() const = 0;
  virtual void axes(HeadAxes axes) const = 0;
  /// T tokens with `slots` heads each.
  virtual int64_t flops(int64_t T, int64_t slots) const = 0;
};

/// How scores are made: s_BHTS = score(q, k).
struct Score : torch::nn::Module, Initialised {
  /// `heads`: the heads (positions) that q holds, of those that are there.
  virtual Tensor score(const Tensor& q_BHTK, const Tensor& k_BHSK, const std::vector<int64_t>& heads) = 0;
  /// The factor, where the scores are factor * q k^T and the fused kernel can make them; nothing otherwise.
  virtual std::optional<double> factor() const { return std::nullopt; }
  virtual void axes(HeadAxes) const {}
  /// T queries and S keys of `slots` heads, compared in `pairs` pairs of all heads.
  virtual int64_t flops(int64_t T, int64_t S, int64_t slots, int64_t pairs) const = 0;
  void draw(const std::function<at::Generator(const std::string&)>&) override {}
};

/// Turns a row of scores into weights; hidden keys have score -inf, and a row with nothing to attend to gives zeros.
struct Normalise : torch::nn::Module {
  virtual Tensor weights(const Tensor& scores_BHTS) = 0;
  virtual bool is_softmax() const { return false; }
};

/// Slots that must know other slots' sizes get them from the shape; a projection sets the groups before the others are
/// made.
using Projects = Registry<Project, Shape>;
using Adapters = Registry<Adapter, Shape>;
using Positions = Registry<Position, Shape>;
using Gates = Registry<Gate, Shape>;
using Mixes = Registry<Mix, Shape>;
using Scores = Registry<Score, Shape>;
using Normalisers = Registry<Normalise>;
const Projects& projects();
const Adapters& adapters();
const Positions& positions();
const Gates& gates();
const Mixes& mixes();
const Scores& scores();
const Normalisers& normalisers();

/// The same, for Choice fields of options.
const Catalogue& project_catalogue();
const Catalogue& adapter_catalogue();
const Catalogue& position_catalogue();
const Catalogue& gate_catalogue();
const Catalogue& mix_catalogue();
const Catalogue& score_catalogue();
const Catalogue& normalise_catalogue();

}  // namespace headlab
