#include "src/export/frames.h"

#include <torch/script.h>

#include <algorithm>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "modules/model/frame_encoder.h"
#include "modules/tensor/init.h"
#include "modules/tensor/torch.h"
#include "src/export/recorded.h"
#include "src/export/trace.h"

namespace headlab {
namespace {

const char* const reading_frames = R"script(
def full(self, frames: Tensor, mask: Tensor) -> Tensor:
    assert frames.size(1) <= self.max_length, "frames: expected at most {}, got {}".format(self.max_length, frames.size(1))
    assert frames.size(2) == self.frame_width, "frames: expected {} numbers each, got {}".format(self.frame_width, frames.size(2))
    return self.recorded_full(frames, mask)

def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
    return self.full(frames, mask)
)script";

Batch batch_of(const Tensor& frames_BTF, const Tensor& mask_BT) {
  Batch batch;
  batch.target_mask_BT = mask_BT;
  batch.side[frames_name] = frames_BTF;
  return batch;
}

double compare_frames(FrameEncoder& model, torch::jit::Module& loaded, int64_t B, int64_t T) {
  T = std::min(T, model.max_length());
  const auto like = torch::dtype(model.dtype()).device(model.device());
  const auto frames =
      torch::randn({B, T, model.frame_width()}, named_generator(1, "export" + std::to_string(T)), torch::kFloat64)
          .to(like);
  const auto lengths = (T - torch::arange(B).mul(2)).clamp_min(1).to(model.device());
  const auto mask = torch::arange(T, lengths.options()).unsqueeze(0).lt(lengths.unsqueeze(1));
  Forward run;
  return compare_outputs("export: full at batch " + std::to_string(B) + ", length " + std::to_string(T),
                         model.logits(batch_of(frames, mask), run),
                         loaded.get_method("full")({frames, mask}).toTensor());
}

}  // namespace

ExportReport export_frames(Model& model, const std::filesystem::path& path,
                           const std::map<std::string, std::string>& files, bool absorb) {
  if (!dynamic_cast<FrameEncoder*>(&model)) throw UsageError("export: expected a model of frames, frame_encoder");
  const auto copy = std::dynamic_pointer_cast<FrameEncoder>(model.clone());
  copy->eval();
  for (auto& parameter : copy->parameters()) parameter.requires_grad_(false);
  const torch::NoGradGuard no_grad;
  auto written = copy;
  if (absorb) {
    written = std::dynamic_pointer_cast<FrameEncoder>(copy->clone());
    absorb_maps(*written);
  }

  ExportReport report;
  report.path = path;
  report.no_text = "this file takes frames";
  std::stringstream archive;
  {
    auto module = mirror(*written, "FrameModel");
    module.register_attribute("max_length", c10::IntType::get(), copy->max_length());
    module.register_attribute("frame_width", c10::IntType::get(), copy->frame_width());
    constexpr int64_t B = 2, T = 5;
    const auto frames = torch::zeros({B, T, copy->frame_width()}, torch::dtype(copy->dtype()).device(copy->device()));
    const auto mask = torch::ones({B, T}, torch::dtype(torch::kBool).device(copy->device()));
    record(module, "recorded_full", {"frames", "mask"}, {frames, mask}, [&](std::vector<c10::IValue> in) {
      Forward run;
      return written->logits(batch_of(in[0].toTensor(), in[1].toTensor()), run);
    });
    module.define(reading_frames);
    module.save(archive, torch::jit::ExtraFilesMap(files.begin(), files.end()));
  }
  auto loaded = torch::jit::load(archive, copy->device());
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{1, 3}, {4, 11}, {2, 29}})
    report.max_difference = std::max(report.max_difference, compare_frames(*copy, loaded, B, T));
  const auto bytes = archive.str();
  write_file_atomically(path, bytes);
  report.bytes = static_cast<int64_t>(bytes.size());
  return report;
}

}  // namespace headlab
