#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/decode/search.h"

namespace headlab {

/// A task whose model writes text: what generation needs of it.
struct WritesText {
  virtual ~WritesText() = default;
  /// Ids of a prompt, without bos.
  virtual std::vector<int64_t> encode(const std::string& prompt) const = 0;
  /// The text of ids; pad, bos and eos give none.
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  /// bos -1: a text begins with its first token; eos -1: texts have no end.
  virtual TextIds text_ids() const = 0;
};

/// What a decoder-only model writes after each prompt (ids without bos and eos; the prompt is not part of the outputs),
/// in the order of the prompts.
///
/// Prompts of one length stand in a batch, of which prompts and outputs together have at most `max_tokens` tokens; none
/// is padded, so that a prompt's output does not depend on the others. run.rows_B is kept as translate_ids keeps it:
/// what is drawn depends on a prompt's place among the prompts, or on run.rows_B where it was set. Throws ShapeError,
/// before any prompt is read, where one is longer than the model takes.
std::vector<Hypotheses> continue_ids(Model& model, const std::vector<std::vector<int64_t>>& prompts, const TextIds& ids,
                                     const SearchOptions& options, int64_t max_tokens, Forward& run);

/// Scores and whole texts (the prompt, as its ids spell it, and what follows) for each prompt. options.prefix is put
/// before every prompt. `first`: the number of the first prompt, for draws that go on from an earlier call.
std::vector<std::vector<std::pair<double, std::string>>> continue_texts(Model& model, const WritesText& text,
                                                                        const std::vector<std::string>& prompts,
                                                                        const SearchOptions& options,
                                                                        int64_t max_tokens, int64_t first = 0);

}  // namespace headlab
