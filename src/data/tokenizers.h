#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/text/tokenizer.h"

namespace headlab {

/// The tokenizers of a pair of languages; joint ones are the same model.
struct TokenizerPair {
  Tokenizer source, target;
  bool joint;
};

/// Loads the models that the options name (file names resolved against `spec_folder` and HEADLAB_DATA), or trains them:
/// a joint one on all source lines followed by all target lines, else one on each.
TokenizerPair make_tokenizers(const TokenizerOptions& options, const std::vector<std::string>& source_lines,
                              const std::vector<std::string>& target_lines, const std::string& spec_folder,
                              uint64_t seed);

}  // namespace headlab
