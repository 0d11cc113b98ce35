#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "src/text/tokenizer.h"

namespace headlab {

/// A SentencePiece tokenizer as TorchScript: encode(text) -> ids, decode(ids) -> text, with the tables of the model
/// inside. Normalisation (any rules), unigram (Viterbi), bpe (merges by score), word and char models, byte fallback.
struct ScriptedTokenizer {
  torch::jit::Module module;
  std::string refused;  // why it can't be carried; empty: it can
};

/// The script in the compilation unit of `root`, compared with the tokenizer on `lines`, on ones with umlauts,
/// combining characters, odd spaces and unknown signs, and on ids. Where any differs, or the model has pieces of kinds
/// that the script does not know (user-defined, unused), it is refused.
ScriptedTokenizer script_tokenizer(const Tokenizer& tokenizer, const torch::jit::Module& root,
                                   const std::vector<std::string>& lines);

/// Adds source_ids(texts) and translate(texts, ...) to a translator that has `source_tokenizer` and `target_tokenizer`;
/// or, with a reason, a translate that raises it. The other arguments of translate are those of translate_ids, with
/// these defaults.
void define_translate(torch::jit::Module& module, const std::string& defaults, const std::string& refused);

}  // namespace headlab
