#pragma once

#include "modules/attention/slots.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/mixer/mixer.h"

namespace headlab {

struct AttentionOptions : Described<AttentionOptions> {
  int64_t heads = 8;
  std::optional<int64_t> head_width, value_width;
  Choice project{project_catalogue, "standard"};
  Choices then{adapter_catalogue, false, {}};
  Choice position{position_catalogue, "none"};
  WeighOptions weigh;
  Choices gates{gate_catalogue, false, {}};
  Choice mix{mix_catalogue, "concatenate"};
  void describe(Fields& fields) override;
};

struct KeptSplit;  // weigh/kept.h

/// The walk that every head variant shares:
///   plan -> project -> (cache) -> adapters -> position -> weigh -> gates -> scale -> mix
/// x_BTD, memory_BSD -> y_BTD. Each step is a slot (slots.h); a variant is an entry of a slot.
class Attention : public Mixer {
 public:
  /// `kept`: original numbers of the heads to make; undefined (nullopt): all.
  Attention(const AttentionOptions& options, int64_t width, int64_t memory_width, bool cross,
            const std::optional<std::vector<int64_t>>& kept = std::nullopt);

  Tensor forward(const AttentionCall& call) override;
  const std::vector<int64_t>& heads() const override { return shape_->heads; }
  int64_t original_heads() const override { return shape_->original_heads; }
  void keep(const std::vector<int64_t>& heads) override;
  HeadAxes axes() const override;
  int64_t flops(int64_t T, int64_t S, bool causal) const override;
  /// For each token; where tokens are kept by group, at equal loads.
  int64_t cache_numbers() const override;
  void absorb() override;
  const AttentionShape& shape() const { return *shape_; }
  const AttentionOptions& options() const { return options_; }
  /// Whether a pass like `run` uses the fused kernel here.
  bool fusable(Site site, const Forward& run) const {
    return weigh->fusable(site, run, position->learns_bias() || project->learns_bias());
  }
  const std::vector<std::shared_ptr<Gate>>& gate_list() const { return gates_; }
  /// Whether a gate chooses heads token by token, so that a head has outputs and weights of some tokens alone.
  bool routes() const;
  /// The same attention with the same weights.
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

 private:
  Tensor key_positions(const AttentionCall& call, const Tensor& k_BGSK, bool from_start) const;
  Tensor bias(const AttentionCall& call, const Tensor& q_BHTK, const std::vector<Tensor>& stored,
              bool from_start) const;
  Tensor scaled(const Tensor& z_BHTK, const HeadPlan& plan, const AttentionCall& call) const;
  /// What follows the weighing: gates, scale and mix.
  Tensor output(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call);
  /// What the gate whose heads keep some tokens alone says of them (Gate::kept_H); empty: there is none.
  std::vector<double> kept_H() const;
  /// y, where groups keep some tokens alone, computed over these; undefined, with nothing done: not in this call.
  Tensor over_kept(const HeadPlan& plan, const AttentionCall& call);
  /// Groups that keep all tokens, whatever comes, and the others.
  KeptSplit kept_split() const;
  /// Whether keys and values can be made, and are cached, of kept tokens alone.
  bool packs_kept() const;
  AttentionOptions options_;
  Shape shape_;
  std::shared_ptr<Project> project{nullptr};
  std::vector<std::shared_ptr<Adapter>> adapters_;
  std::shared_ptr<Position> position{nullptr};
  std::shared_ptr<Weigh> weigh{nullptr};
  std::vector<std::shared_ptr<Gate>> gates_;
  std::shared_ptr<Mix> mix{nullptr};
};

/// Rules that relate options to each other and to the width; used by specs before anything is allocated.
void attention_rules(const AttentionOptions& options, int64_t width, bool cross, const std::string& prefix,
                     Problems& problems);

/// Copies all parameters and buffers of `from` to `to`, which must have the same names and shapes.
void copy_tensors(const torch::nn::Module& from, torch::nn::Module& to);

}  // namespace headlab
