#include "src/data/tokenizers.h"

#include "src/data/paths.h"

namespace headlab {

TokenizerPair make_tokenizers(const TokenizerOptions& options, const std::vector<std::string>& source_lines,
                              const std::vector<std::string>& target_lines, const std::string& spec_folder,
                              uint64_t seed) {
  const auto load = [&](const std::string& name) {
    return Tokenizer::load(resolve_data_path(name, spec_folder), options);
  };
  if (options.model) {
    const Tokenizer both = load(*options.model);
    return {both, both, true};
  }
  if (options.source_model && options.target_model) {
    return {load(*options.source_model), load(*options.target_model), false};
  }
  if (!options.joint) {
    return {Tokenizer::train(source_lines, options, seed), Tokenizer::train(target_lines, options, seed), false};
  }
  std::vector<std::string> lines = source_lines;
  lines.insert(lines.end(), target_lines.begin(), target_lines.end());
  const Tokenizer both = Tokenizer::train(lines, options, seed);
  return {both, both, true};
}

}  // namespace headlab
