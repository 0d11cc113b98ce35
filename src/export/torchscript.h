#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/decode/search.h"
#include "src/text/tokenizer.h"

/// A translator as one TorchScript file, for Python's torch.jit.load and C++'s torch::jit::load without headlab.
///
/// Batch and lengths are free, and it runs on the device that its parameters are moved to. Methods, with ids as long
/// tensors padded on the right, masks as bool tensors (true: a token), logits and memory of the model's type:
///   encode(source_BS, mask_BS) -> memory_BSD                                 source: ids and eos
///   full(source_BS, mask_BS, target_BT) -> logits_BTV                        target: bos and ids
///   begin(target_BT, memory, mask) -> (logits_BV, caches)                    logits of the token that follows
///   step(ids_B1, length, mask, caches) -> (logits_BV, caches)                `length`: tokens read before this one
///   search(memory, mask, limits_B, beam, length_penalty) -> (ids_BT, scores_B)
///   translate_ids(source_BS, beam, length_penalty, max_length) -> ids_BT     source: ids alone, padded with source_pad
///   translate(texts, beam, length_penalty, max_length) -> texts              where the tokenizers can be carried
/// The last two have the defaults of the search options; max_length 0: from each source's length. What they return is
/// what src/decode/search.h returns. Without tokenizers that can be carried, translate raises an error that says why.
/// Attributes: source_pad, source_eos, target_pad, target_bos, target_eos, max_length.
namespace headlab {

/// What goes into the file beside the model.
struct ExportOptions {
  TextIds source, target;
  SearchOptions search;
  std::optional<Tokenizer> source_tokenizer, target_tokenizer;  // for translate
  std::map<std::string, std::string> files;                     // extra files of the archive: "spec.json", ...
  std::vector<std::vector<int64_t>> sentences;  // sources to compare translations of, beside random ones
  std::vector<std::string> lines;               // texts to compare the carried tokenizers on
  bool absorb = true;  // matrices that follow each other in an attention become one (Mixer::absorb)
};

struct ExportReport {
  std::filesystem::path path;
  int64_t bytes = 0;
  double max_difference = 0;       // largest difference of a logit from the eager model's, over all shapes tried
  int64_t sentences_compared = 0;  // whose greedy and beam translations were compared
  std::string no_text;             // why there is no `translate`; empty: there is
};

/// Writes `model` to `path`. The model itself stays as it is.
///
/// What is recorded is the model with its maps absorbed (options.absorb): matrices that follow each other are
/// multiplied beforehand. Before the file takes its place, what it holds is loaded and compared with the eager model at
/// other batch sizes and lengths than it was recorded at: logits within 1e-5 of their size (float64: 1e-10), greedy and
/// beam translations of the sentences equal, unless both texts have the same score to rounding. On a mismatch there is
/// no file, and an Error says where. Throws UsageError for a model that is no encoder-decoder, and FileError where the
/// file can't be written.
ExportReport export_torchscript(Model& model, const std::filesystem::path& path, const ExportOptions& options);

}  // namespace headlab
