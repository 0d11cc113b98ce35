#pragma once

#include <memory>

#include "src/text/tokenizer.h"
#include "src/text/tokenizer_model.h"

namespace headlab {

/// The model of a SentencePiece .model file's bytes (1808.06226); throws FileError, which begins with `where`, for
/// others. The model keeps its own ids; pad, bos and eos that it lacks come after its last piece, in that order.
std::shared_ptr<const TokenizerModel> sentence_piece_from_bytes(std::string bytes, const std::string& where);

/// The bytes of a model trained on the lines, with pad 0, unk 1, bos 2, eos 3. The same lines and options give the same
/// bytes. Throws Error where a unigram or BPE vocabulary is more or less than the text supports.
std::string train_sentence_piece(std::vector<const std::string*> lines, const TokenizerOptions& options);

}  // namespace headlab
