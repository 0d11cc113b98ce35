#include "src/decode/score.h"

#include <algorithm>

#include "modules/tensor/torch.h"
#include "src/data/batches.h"
#include "src/decode/pad.h"

namespace headlab {

std::vector<std::vector<double>> score_ids(Model& model, const std::vector<std::vector<int64_t>>& sources,
                                           const std::vector<std::vector<int64_t>>& targets, const TextIds& source,
                                           const TextIds& target, int64_t max_tokens) {
  const bool pairs = !sources.empty();
  std::vector<int64_t> source_lengths, target_lengths;
  std::vector<std::vector<int64_t>> texts;  // what is read and scored, bos and eos included
  for (std::size_t i = 0; i < targets.size(); ++i) {
    auto& text = texts.emplace_back();
    if (target.bos >= 0) text.push_back(target.bos);
    text.insert(text.end(), targets[i].begin(), targets[i].end());
    if (target.eos >= 0) text.push_back(target.eos);
    target_lengths.push_back(static_cast<int64_t>(text.size()));
    if (pairs) source_lengths.push_back(static_cast<int64_t>(sources[i].size()) + 1);
    const auto longest = std::max<int64_t>(target_lengths.back() - 1, pairs ? source_lengths.back() : 0);
    if (longest > model.max_length())
      throw ShapeError("score: text " + std::to_string(i + 1) + ": expected at most " +
                       std::to_string(model.max_length()) + " tokens, got " + std::to_string(longest) +
                       "; raise model.embedding.max_length");
  }
  std::vector<std::vector<double>> scores(texts.size());
  if (texts.empty()) return scores;
  BatchOptions options;
  options.max_tokens = max_tokens;
  const torch::NoGradGuard no_grad;
  for (const auto& examples : evaluation_batches(pairs ? source_lengths : target_lengths,
                                                 pairs ? target_lengths : std::vector<int64_t>{}, options)) {
    std::vector<std::vector<int64_t>> read, next, from;
    for (const auto example : examples) {
      const auto& text = texts[static_cast<std::size_t>(example)];
      read.emplace_back(text.begin(), text.end() - (text.empty() ? 0 : 1));
      next.emplace_back(text.begin() + (text.empty() ? 0 : 1), text.end());
      if (!pairs) continue;
      from.push_back(sources[static_cast<std::size_t>(example)]);
      from.back().push_back(source.eos);
    }
    std::size_t longest = 0;
    for (const auto& one : read) longest = std::max(longest, one.size());
    if (longest == 0) continue;  // nothing to be said of them
    Batch batch;
    if (pairs) std::tie(batch.source_BS, batch.source_mask_BS) = pad_right(from, source.pad, model.device());
    std::tie(batch.target_BT, batch.target_mask_BT) = pad_right(read, std::max<int64_t>(target.pad, 0), model.device());
    const auto wanted = pad_right(next, 0, model.device()).first;
    Forward run;
    const auto logits_BTV = model.logits(batch, run);
    const auto log_p_BT = logits_BTV.to(torch::kFloat64)
                              .log_softmax(-1)
                              .gather(2, wanted.unsqueeze(2))
                              .squeeze(2)
                              .to(torch::kCPU)
                              .contiguous();
    for (std::size_t b = 0; b < examples.size(); ++b) {
      const auto* row = log_p_BT.const_data_ptr<double>() + static_cast<int64_t>(b) * log_p_BT.size(1);
      scores[static_cast<std::size_t>(examples[b])].assign(row, row + next[b].size());
    }
  }
  return scores;
}

}  // namespace headlab
