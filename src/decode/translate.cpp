#include "src/decode/translate.h"

#include <torch/torch.h>

#include <algorithm>
#include <iterator>

#include "src/data/batches.h"

namespace headlab {

PaddedTexts padded_texts(const std::vector<const std::vector<int64_t>*>& texts, const TextIds& ids, torch::Device device) {
  std::size_t longest = 0;
  for (const auto* text : texts) longest = std::max(longest, text->size() + 1);
  const auto rows = static_cast<int64_t>(texts.size()), columns = static_cast<int64_t>(longest);
  auto ids_BS = torch::full({rows, columns}, ids.pad, torch::kLong);
  auto mask_BS = torch::zeros({rows, columns}, torch::kBool);
  auto* id = ids_BS.data_ptr<int64_t>();
  auto* real = mask_BS.data_ptr<bool>();
  for (const auto* text : texts) {
    std::copy(text->begin(), text->end(), id);
    id[text->size()] = ids.eos;
    std::fill_n(real, text->size() + 1, true);
    id += longest;
    real += longest;
  }
  if (mask_BS.all().item<bool>()) mask_BS = Tensor();
  return {ids_BS.to(device), mask_BS.defined() ? mask_BS.to(device) : mask_BS};
}

std::vector<Hypotheses> translate_ids(Model& model, const std::vector<std::vector<int64_t>>& sources, const TextIds& source,
                                      const TextIds& target, const SearchOptions& options, int64_t max_tokens, Forward& run,
                                      const std::vector<int64_t>& prefix) {
  if (sources.empty()) return {};
  std::vector<int64_t> lengths;
  for (const auto& text : sources) lengths.push_back(static_cast<int64_t>(text.size()) + 1);
  const auto longest = std::max_element(lengths.begin(), lengths.end());
  if (*longest > model.max_length())
    throw ShapeError("translate: source " + std::to_string(longest - lengths.begin() + 1) + ": expected at most " +
                     std::to_string(model.max_length()) + " tokens with eos, got " + std::to_string(*longest) +
                     "; raise model.embedding.max_length");
  BatchOptions batch_options;
  batch_options.max_tokens = max_tokens;
  const auto batches = evaluation_batches(lengths, {}, batch_options);

  const auto before = run.rows_B;
  std::vector<Hypotheses> results;
  try {
    for (const auto& examples : batches) {
      std::vector<const std::vector<int64_t>*> texts;
      for (const auto example : examples) texts.push_back(&sources[static_cast<std::size_t>(example)]);
      auto padded = padded_texts(texts, source, model.device());
      const auto rows = torch::tensor(examples, torch::kLong).to(model.device());
      run.rows_B = before.defined() ? before.index_select(0, rows.to(before.device())) : rows;
      Batch batch{padded.ids_BS, padded.mask_BS, {}, {}};
      if (!prefix.empty()) batch.target_BT = torch::tensor(prefix, torch::kLong).to(model.device()).expand({rows.size(0), -1});
      auto found = search(model, batch, target, options, run);
      std::move(found.begin(), found.end(), std::back_inserter(results));
    }
  } catch (...) {
    run.rows_B = before;
    throw;
  }
  run.rows_B = before;
  return original_order(batches, std::move(results));
}

}  // namespace headlab
