#include "modules/embedding/frames.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

Tensor frames_of(const std::map<std::string, Tensor>& side, const Tensor& places_BT, int64_t width) {
  const auto found = side.find(frames_name);
  if (found == side.end())
    throw UsageError(
        "model: expected frames of numbers, got a text of ids; use a task whose data are frames, or a model that reads "
        "ids");
  const auto& frames = found->second;
  if (frames.dim() != 3 || frames.size(2) != width ||
      (places_BT.defined() && (frames.size(0) != places_BT.size(0) || frames.size(1) != places_BT.size(1))))
    throw wrong_shape(
        "frames", "[B, T, " + std::to_string(width) + "] as model.embedding.frame_width says, a frame for each place",
        frames);
  return frames;
}

void FrameEmbeddingOptions::describe(Fields& fields) {
  fields.add("frame_width", frame_width, "numbers of a frame").at_least(1);
  fields.add("position", position, "positions added to what becomes of the frames");
  fields.add("max_length", max_length, "longest text that the model takes").at_least(1).unit("frames");
  fields.add("dropout", dropout, "on what becomes of the frames, with positions")
      .at_least(0)
      .below(1)
      .means("absent: model.dropout");
}

FrameEmbed::FrameEmbed(const FrameEmbeddingOptions& options, int64_t width, double dropout, const std::string& kind)
    : max_length_(options.max_length), dropout_(options.dropout.value_or(dropout)), kind_(kind) {
  project = register_module("project", torch::nn::Linear(options.frame_width, width));
  position = register_module("position", added_positions().make(options.position, width, options.max_length));
}

Tensor FrameEmbed::forward(const Tensor& frames_BTF, const Tensor& positions) {
  if (frames_BTF.size(1) > max_length_)
    throw ShapeError("embedding: expected at most " + std::to_string(max_length_) + " frames, got " +
                     std::to_string(frames_BTF.size(1)) + "; raise model.embedding.max_length");
  auto x = relevance::linear(frames_BTF.to(project->weight.scalar_type()), project->weight, project->bias);
  const auto added = position->at(positions);
  if (added.defined()) x = x + added;
  return drop(x, dropout_, is_training(), kind_);
}

}  // namespace headlab
