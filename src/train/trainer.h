#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "src/checkpoint/checkpoint.h"
#include "src/data/batches.h"
#include "src/task/task.h"
#include "src/train/augment.h"
#include "src/train/aux_weight.h"
#include "src/train/early_stopping.h"
#include "src/train/head_mask.h"
#include "src/train/optimizer.h"
#include "src/train/penalty.h"
#include "src/train/rates.h"
#include "src/train/schedule.h"

namespace headlab {

/// A second task whose batches stand beside those of the first in each update, untouched by head masks.
struct AnchorOptions : Described<AnchorOptions> {
  std::string task;
  BatchOptions batch;
  void describe(Fields& fields) override;
};

struct TrainOptions : Described<TrainOptions> {
  int64_t steps = 1000;
  BatchOptions batch;
  int64_t accumulate = 1;
  double label_smoothing = 0.1;
  double clip = 1.0;
  Choice optimizer{optimizer_catalogue, "adamw"};
  Choice schedule{schedule_catalogue, "transformer"};
  std::vector<RateOptions> rates;
  Choices penalties{penalty_catalogue, false, {}};
  std::vector<AuxWeightOptions> aux;
  Choices head_masks{head_mask_catalogue, false, {}};
  AnchorOptions anchor;
  Choices augment{augmentation_catalogue, false, {}};
  int64_t log_every = 50;
  int64_t validate_every = 0;
  int64_t checkpoint_every = 0;
  int64_t keep_checkpoints = 2;
  EvaluateOptions validate;
  EarlyStoppingOptions early_stopping;
  TrainOptions() {
    validate.split = "valid";
    validate.metrics = {"loss"};
  }
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// What was seen since the last report.
struct TrainReport {
  int64_t step = 0, steps = 0, epoch = 0, tokens = 0;  // tokens: of targets, in all
  double loss = 0, nll = 0, grad_norm = 0, learning_rate = 0, tokens_per_second = 0, seconds = 0;
  std::map<std::string, double> aux, valid;  // aux: auxiliary losses and "penalty", the value of l1 and l2 penalties
};

/// Trains a model on a task, and can stop and go on to the same bits.
///
/// A step's loss is the sum over the target tokens of all its micro-batches, divided by their number, so that
/// accumulation weighs tokens equally; auxiliary losses are added as sum / count over the same step, times their
/// weights (`aux`), and penalties once. A loss that is not finite stops the training with an Error before the update;
/// what was saved stays.
///
/// What modules learn without gradients (modules/tensor/updated.h) they learn after each update, from the sums that all
/// batches of the step left.
///
/// Head masks multiply what each head gives, all batches of a step alike; several are multiplied. Their draws are of
/// their own, so that a mask of no head leaves the bits of the training as they are.
///
/// An anchor adds a batch of its own to each step, of another task and without head masks; its tokens weigh as much as
/// the others.          (2508.19697, attention head-level dropout)
///
/// With early stopping, the checkpoint of the best validation so far stays beside the last ones, and the model is left
/// with its weights.
class Trainer {
 public:
  /// `anchor`: the task that options.anchor names; nullptr: none.
  Trainer(Model& model, const Task& task, const TrainOptions& options, int64_t d_model, uint64_t seed,
          const Task* anchor = nullptr);

  /// Goes on until options.steps, or until early stopping ends it. `report` is called every log_every steps and at the
  /// end. Checkpoints go to `folder` (empty: none). `stop` is asked after each step; true saves and leaves early.
  /// Returns whether the training is over.
  bool run(const std::filesystem::path& folder, const std::function<void(const TrainReport&)>& report,
           const std::function<bool()>& stop = {});

  /// Everything that the next step depends on.
  Checkpoint checkpoint() const;
  /// Continues the run that `folder` holds; false where it holds none.
  bool resume(const std::filesystem::path& folder);

  int64_t step() const { return step_; }
  const EarlyStopping& early_stopping() const { return stopping_; }
  int64_t tokens() const { return tokens_; }
  double seconds() const { return seconds_; }
  /// Added to each checkpoint's state.json (the model's options, heads, offsets of files).
  std::function<void(nlohmann::json&)> annotate;

 private:
  void one_step();
  std::map<Stack, Tensor> head_scale(const std::vector<TokenBatch>& batches, int64_t tokens);
  TokenBatch next_batch();
  /// Of the draws of gates in the step's batch `i`.
  uint64_t noise_seed(std::size_t i) const { return seed_ + static_cast<uint64_t>(step_) * 0x9e3779b97f4a7c15ULL + i; }
  void load_best();
  Model& model_;
  const Task& task_;
  TrainOptions options_;
  uint64_t seed_;
  Rates rates_;
  std::shared_ptr<Schedule> schedule_;
  std::vector<std::shared_ptr<Penalty>> penalties_;
  AuxWeights aux_weights_;
  std::vector<std::shared_ptr<HeadMask>> head_masks_;
  Augment augment_;
  BatchOrder order_;
  const Task* anchor_;
  std::optional<BatchOrder> anchor_order_;
  EarlyStopping stopping_;
  TensorMap best_;  // the weights of the best validation; empty before it, and without early stopping
  int64_t step_ = 0, tokens_ = 0;
  double seconds_ = 0;
  // since the last report
  Tensor loss_, nll_, norm_;
  std::map<std::string, Tensor> aux_;
  int64_t recent_steps_ = 0, recent_tokens_ = 0;
  double recent_seconds_ = 0;
};

}  // namespace headlab
