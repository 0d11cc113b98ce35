#include "src/decode/generate.h"

#include <algorithm>
#include <map>

#include "modules/tensor/torch.h"

namespace headlab {

std::vector<Hypotheses> continue_ids(Model& model, const std::vector<std::vector<int64_t>>& prompts, const TextIds& ids,
                                     const SearchOptions& options, int64_t max_tokens, Forward& run) {
  const auto room = model.max_length() - (ids.bos >= 0 ? 1 : 0);
  std::map<int64_t, std::vector<int64_t>> by_length;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto length = static_cast<int64_t>(prompts[i].size());
    if (length > room)
      throw ShapeError("generate: prompt " + std::to_string(i + 1) + ": expected at most " + std::to_string(room) +
                       " tokens, got " + std::to_string(length) + "; shorten it");
    by_length[length].push_back(static_cast<int64_t>(i));
  }
  const auto before = run.rows_B;
  std::vector<Hypotheses> results(prompts.size());
  try {
    for (const auto& [length, members] : by_length) {
      const auto of_row = (length + 1 + options.limit(0, room - length)) * std::max(options.beam, options.n_best);
      const auto rows = static_cast<std::size_t>(std::max<int64_t>(max_tokens / of_row, 1));
      for (std::size_t from = 0; from < members.size(); from += rows) {
        const std::vector<int64_t> examples(
            members.begin() + static_cast<std::ptrdiff_t>(from),
            members.begin() + static_cast<std::ptrdiff_t>(std::min(from + rows, members.size())));
        std::vector<int64_t> flat;
        for (const auto example : examples) {
          const auto& prompt = prompts[static_cast<std::size_t>(example)];
          flat.insert(flat.end(), prompt.begin(), prompt.end());
        }
        const auto index = torch::tensor(examples, torch::kLong).to(model.device());
        run.rows_B = before.defined() ? before.index_select(0, index.to(before.device())) : index;
        Batch batch;
        batch.target_BT = torch::tensor(flat, torch::kLong).view({index.size(0), length}).to(model.device());
        auto found = search(model, batch, ids, options, run);
        for (std::size_t i = 0; i < examples.size(); ++i)
          results[static_cast<std::size_t>(examples[i])] = std::move(found[i]);
      }
    }
  } catch (...) {
    run.rows_B = before;
    throw;
  }
  run.rows_B = before;
  return results;
}

std::vector<std::vector<std::pair<double, std::string>>> continue_texts(Model& model, const WritesText& text,
                                                                        const std::vector<std::string>& prompts,
                                                                        const SearchOptions& options,
                                                                        int64_t max_tokens, int64_t first) {
  std::vector<std::vector<int64_t>> all;
  for (const auto& prompt : prompts) all.push_back(text.encode(options.prefix + prompt));
  Forward run;
  if (!all.empty())
    run.rows_B = torch::arange(first, first + static_cast<int64_t>(all.size()),
                               torch::dtype(torch::kLong).device(model.device()));
  const auto found = continue_ids(model, all, text.text_ids(), options, max_tokens, run);
  std::vector<std::vector<std::pair<double, std::string>>> texts;
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto& of_prompt = texts.emplace_back();
    for (const auto& hypothesis : found[i]) {
      auto ids = all[i];
      ids.insert(ids.end(), hypothesis.ids.begin(), hypothesis.ids.end());
      of_prompt.emplace_back(hypothesis.score, text.decode(ids));
    }
  }
  return texts;
}

}  // namespace headlab
