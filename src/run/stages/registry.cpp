#include "src/run/stages/stages.h"

namespace headlab {

const Stages& stages() {
  static const Stages registry =
      Stages("stage", "one step of a run")
          .entry<TrainStage, TrainStageOptions>("train", "trains the model on the task")
          .entry<AverageStage, AverageStageOptions>("average", "the mean of a training's last checkpoints",
                                                    "1706.03762")
          .entry<EvaluateStage, EvaluateStageOptions>("evaluate", "measures the model")
          .entry<MeasureStage, MeasureStageOptions>("measure",
                                                    "measures what no metric gives: variances, gradients, time")
          .entry<ScoreStage, ScoreStageOptions>("score", "says how much each head matters")
          .entry<AblateStage, AblateStageOptions>("ablate", "masks heads one at a time and in sets, and measures each")
          .entry<MaskStage, MaskStageOptions>("mask", "masks heads: they stay, and are multiplied by 0")
          .entry<PruneStage, PruneStageOptions>("prune", "removes heads: the matrices become smaller")
          .entry<ConvertStage, ConvertStageOptions>("convert",
                                                    "makes attentions of another kind out of the trained ones")
          .entry<CurveStage, CurveStageOptions>("curve",
                                                "a metric against the number of heads left, by scores and at random")
          .entry<ExportStage, ExportStageOptions>("export", "writes the model as TorchScript and safetensors")
          .entry<RepeatStage, RepeatStageOptions>("repeat", "runs stages several times with other seeds");
  return registry;
}

}  // namespace headlab
