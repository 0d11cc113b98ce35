#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "src/decode/search.h"
#include "src/export/torchscript.h"

namespace headlab {

/// A model of one text (decoder_only, encoder_only) as one TorchScript file. Batch and lengths are free, as is the
/// device. Methods, with ids as long tensors padded on the right and masks as bool tensors (true: a token):
///   full(ids_BT, mask_BT) -> logits      of every place, or what another output says of the text (modules/output)
/// and of a decoder over the vocabulary, for texts without padding:
///   begin(ids_BT) -> (logits_BV, caches)                      logits of the token that follows
///   step(ids_B1, length, caches) -> (logits_BV, caches)       `length`: tokens read before this one
///   generate_ids(ids_BT, tokens) -> ids_B?                    ids: bos and what is given. The most probable next
///   tokens, one
///                                                             after another, until each row wrote eos or `tokens` were
///                                                             written; padded with pad. pad and bos are never written,
///                                                             as in src/decode/search.h
/// Attributes: pad, bos, eos, max_length.
///
/// What the file holds is loaded and compared with the eager model at other batch sizes and lengths before it takes its
/// place, as export_torchscript does; `absorb` as there. Throws UsageError for a model of another kind, FileError where
/// it can't be written.
ExportReport export_single_stack(Model& model, const std::filesystem::path& path, const TextIds& ids,
                                 const std::map<std::string, std::string>& files, bool absorb = true);

}  // namespace headlab
