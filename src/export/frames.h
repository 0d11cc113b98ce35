#pragma once

#include "src/export/torchscript.h"

namespace headlab {

/// A model of frames (frame_encoder) as one TorchScript file. Batch, lengths and device are free. Methods:
///   full(frames_BTF, mask_BT) -> logits      frames padded on the right; mask: bool, true: a frame
/// Attributes: max_length, frame_width. What the file holds is compared with the eager model at other sizes before it
/// takes its place; `absorb` as in export_torchscript. Throws UsageError for a model of another kind, FileError where
/// it can't be written.
ExportReport export_frames(Model& model, const std::filesystem::path& path,
                           const std::map<std::string, std::string>& files, bool absorb = true);

}  // namespace headlab
