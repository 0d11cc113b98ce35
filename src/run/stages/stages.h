#pragma once

#include "src/ablate/ablate.h"
#include "src/convert/convert.h"
#include "src/heads/scorer.h"
#include "src/measure/measure.h"
#include "src/run/stage.h"
#include "src/train/trainer.h"

/// The stages of a run: their options as specs write them, and what each leaves in results.json.
namespace headlab {

/// Options that stand in a stage beside its name and model.
template <class Inner, const char* type>
struct StageWith : Described<StageWith<Inner, type>>, StageCommon {
  Inner inner;
  void describe(Fields& fields) override {
    describe_common(fields, type);
    inner.describe(fields);
  }
  void rules(Problems& problems) const override { inner.rules(problems); }
};

inline constexpr char train_type[] = "train", evaluate_type[] = "evaluate", ablate_type[] = "ablate";
using TrainStageOptions = StageWith<TrainOptions, train_type>;
using EvaluateStageOptions = StageWith<EvaluateOptions, evaluate_type>;
struct AblateStageOptions : StageWith<AblateOptions, ablate_type>, StageRules {
  void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<AblateStageOptions>(*this); }
};

/// {"steps", "tokens", "seconds", "loss", "valid"}, with early stopping {"stopped_at", "best_step"} too, and "valid" of
/// the best step; the model is checkpoints/<stage>/final.
class TrainStage : public Stage {
 public:
  explicit TrainStage(const TrainStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  TrainStageOptions options_;
};

/// {"metrics", "signature", "samples", "seconds"}; outputs go to outputs/<stage>.txt.
class EvaluateStage : public Stage {
 public:
  explicit EvaluateStage(const EvaluateStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  EvaluateStageOptions options_;
};

struct AverageStageOptions : Described<AverageStageOptions>, StageCommon, StageRules {
  int64_t last = 5;
  void describe(Fields& fields) override;
  void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const override;
};

/// {"model", "steps"}: the mean of the weights of the last checkpoints of a training, at these steps. Tied weights stay
/// tied; what is no floating-point number is that of the last.          (1706.03762, section 6.1)
class AverageStage : public Stage {
 public:
  explicit AverageStage(const AverageStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  AverageStageOptions options_;
};

struct ScoreStageOptions : Described<ScoreStageOptions>, StageCommon, StageRules {
  Choice scorer{scorer_catalogue, "gradient"};
  std::vector<std::string> against;
  void describe(Fields& fields) override;
  void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const override;
};

/// {"method", "of", "heads", "gini", "most": {"name", "layer", "head", "score"}, "agreement"}, and heads/<stage>.json.
/// `gini` says how unequal the scores are; null where one is below 0. `most`: the head of the highest score.
/// `agreement`: for each stage of `against`, Spearman's correlation with its scores, {"all", "enc.self", ...}.
class ScoreStage : public Stage {
 public:
  explicit ScoreStage(const ScoreStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  ScoreStageOptions options_;
};

/// {"metric", "baseline", "count", "heads", "sets", "replaced_with", "worst": {"head", "delta"}}: `worst` is the head
/// without which the metric is worst.
class AblateStage : public Stage {
 public:
  explicit AblateStage(const AblateStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  AblateStageOptions options_;
};

/// Which heads: named ones, or those that scores or chance select.
struct HeadChoiceOptions : Described<HeadChoiceOptions>, StageCommon, StageRules {
  std::vector<std::string> heads;
  std::string scores, scores_file;
  bool random = false;
  SelectOptions select;
  void describe_heads(Fields& fields, const std::string& type);
  void describe(Fields& fields) override { describe_heads(fields, "prune"); }
  void rules(Problems& problems) const override;
  void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const override;
  HeadSet choose(RunContext& context, const HeadTable& there, uint64_t seed) const;
};

struct MaskStageOptions : HeadChoiceOptions {
  void describe(Fields& fields) override { describe_heads(fields, "mask"); }
  std::shared_ptr<Options> copy() const override { return std::make_shared<MaskStageOptions>(*this); }
};
struct PruneStageOptions : HeadChoiceOptions {
  bool closed_gates = false;
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<PruneStageOptions>(*this); }
};

/// {"masked", "heads_before", "heads_after"}; later stages of this model multiply those heads by 0.
class MaskStage : public Stage {
 public:
  explicit MaskStage(const MaskStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  MaskStageOptions options_;
};

/// {"removed", "kept", "heads_before", "heads_after", "parameters_before", "parameters_after", "flops_before",
/// "flops_after" (of the products of one pass over a text as long as the data's longest), "seconds_before",
/// "seconds_after" (of a forward pass over some validation examples)}. Heads that an earlier stage masked are removed
/// too: without effect they stay.
class PruneStage : public Stage {
 public:
  explicit PruneStage(const PruneStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  PruneStageOptions options_;
};

struct CurveStageOptions : Described<CurveStageOptions>, StageCommon, StageRules {
  std::string scores;
  std::vector<double> fractions{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  std::string metric;
  std::string scope = "global";
  std::vector<std::string> stacks;
  bool highest = false;
  int64_t random_sets = 0;
  std::optional<double> threshold;
  EvaluateOptions evaluate;
  CurveStageOptions() { evaluate.split = "valid"; }
  void describe(Fields& fields) override;
  void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const override;
};

/// {"metric", "scores", "model", "scope", "stacks", "highest", "points": [{"fraction", "heads_kept", "kept_by_stack",
/// "value", "random": {"mean", "low", "high", "values"}}]}: masking the least important heads, or with `highest` the
/// most important ones, without training. With a threshold also {"falls_after", "random_falls_after"}: how many heads
/// are masked at the first point whose value lies under it (of random sets the mean), or one more than there are where
/// none does.
class CurveStage : public Stage {
 public:
  explicit CurveStage(const CurveStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  CurveStageOptions options_;
};

struct ExportStageOptions : Described<ExportStageOptions>, StageCommon {
  std::string file, split = "test";
  int64_t compare = 0;
  bool absorb = true;
  SearchOptions search;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// {"file", "bytes", "max_difference", "compared", "different", "different_in_cpp", "different_in_python", "text"}: the
/// file has been loaded again, and its translations of `compare` sources counted that differ from the eager model's.
/// Beside it are the weights as safetensors.
class ExportStage : public Stage {
 public:
  explicit ExportStage(const ExportStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  ExportStageOptions options_;
};

struct ConvertStageOptions : Described<ConvertStageOptions>, StageCommon {
  ConvertOptions convert;
  void describe(Fields& fields) override;
};

/// The report of convert() (src/convert/convert.h), with "to"; later stages have the converted model.
class ConvertStage : public Stage {
 public:
  explicit ConvertStage(const ConvertStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  ConvertStageOptions options_;
};

struct MeasureStageOptions : Described<MeasureStageOptions>, StageCommon {
  Choice what{measure_catalogue, "scores"};
  void describe(Fields& fields) override;
};

/// What the measure gives (src/measure/measure.h).
class MeasureStage : public Stage {
 public:
  explicit MeasureStage(const MeasureStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  MeasureStageOptions options_;
};

struct RepeatStageOptions : Described<RepeatStageOptions>, StageCommon, StageRules {
  std::optional<int64_t> times;  // absent: 3, or once for each of `with`
  bool chained = false;
  nlohmann::ordered_json with;  // [{"stages[0].train.steps": 100}, ...]: what each repetition sets
  Choices stages{stage_catalogue, true, {}};
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const override;
  int64_t repetitions() const { return times.value_or(with.empty() ? 3 : static_cast<int64_t>(with.size())); }
  /// The stages of repetition i, from 0, with what it sets; adds to `problems`, at `place`, what can't be set.
  Choices stages_of(int64_t i, const std::string& place, Problems& problems) const;
};

/// {"runs": [results of the inner stages, one object a repetition], "with": what each set, where they differ}. Each
/// repetition starts from the model that stood before, as does what comes after; chained, each goes on from the one
/// before it (score, prune, train, and again), and the last model is this stage's.
class RepeatStage : public Stage {
 public:
  explicit RepeatStage(const RepeatStageOptions& options) : options_(options) {}
  nlohmann::ordered_json run(RunContext& context) override;

 private:
  RepeatStageOptions options_;
};

/// The scale that a stage's mask asks for; empty where there is none.
std::map<Stack, Tensor> scale_of(RunContext& context, const std::string& stage, const Model& model);

}  // namespace headlab
