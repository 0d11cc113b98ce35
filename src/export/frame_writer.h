#pragma once

#include "src/export/torchscript.h"

namespace headlab {

/// A model that writes what frames say (frame_transcriber, frame_ctc) as one TorchScript file. Batch, lengths and
/// device are free. Frames [B,S,F] of the model's type, padded on the right; mask: bool, true: a frame; ids as long
/// tensors. Methods of a frame_transcriber:
///   encode(frames, mask) -> memory_BSD
///   full(frames, mask, target_BT) -> logits_BTV                  target: bos and ids, the right ones
///   start(memory, mask) -> caches
///   begin(target_BT, memory, mask) -> (logits_BV, caches)        logits of what follows target
///   step(ids_B1, length, mask, caches) -> (logits_BV, caches)    `length`: ids read before
///   search(memory, mask, limits_B, beam, length_penalty) -> (ids_BT, scores_B)
///   transcribe(frames, mask, beam, length_penalty, max_length) -> ids_BT, padded with target_pad
/// with the defaults of the search options, as src/decode/search.h has it; max_length 0: from each text's frames.
/// Of a model with a map for CTC:
///   ctc(frames, mask) -> log p [B,S,V] of the blank (id 0) and symbols at each frame
///   best_path(frames, mask) -> ids_BT, padded with target_pad: what the most probable path writes
/// transcribe of a frame_ctc is its best_path. Attributes: target_pad, target_bos, target_eos, max_length, frame_width.
///
/// Loops over symbols are the file's own, around one recorded step. What the file holds is compared with the eager
/// model at other sizes before it takes its place; `absorb` as in export_torchscript. Throws UsageError for a model of
/// another kind, FileError where it can't be written.
ExportReport export_frame_writer(Model& model, const std::filesystem::path& path, const TextIds& ids,
                                 const SearchOptions& search, const std::map<std::string, std::string>& files,
                                 bool absorb = true);

}  // namespace headlab
