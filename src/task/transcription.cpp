#include "src/task/transcription.h"

#include <algorithm>
#include <numeric>

#include "modules/embedding/frames.h"
#include "modules/loss/ctc.h"
#include "modules/model/frame_ctc.h"
#include "modules/tensor/torch.h"
#include "src/decode/best_path.h"
#include "src/decode/pad.h"
#include "src/task/token_loss.h"

namespace headlab {
namespace {

constexpr int64_t first_symbol = ctc_first_symbol;  // after pad, unk, bos and eos

std::vector<int64_t> ids_of(const std::vector<int64_t>& symbols) {
  auto ids = symbols;
  for (auto& id : ids) id += first_symbol;
  return ids;
}

/// As a model that writes reads them.
Batch heard_batch(const FrameRows& rows) {
  Batch batch;
  batch.source_BS = rows.places_BT;
  batch.source_mask_BS = rows.mask_BT;
  batch.side[frames_name] = rows.frames_BTF;
  return batch;
}

std::vector<Hypotheses> hypotheses(Model& model, const Batch& heard, const TextIds& ids, const SearchOptions& options,
                                   Forward& run) {
  if (!options.prefix.empty())
    throw UsageError("search.prefix: a transcription begins with what is said first; leave it out");
  auto* ctc = dynamic_cast<FrameCtc*>(&model);
  if (!ctc || options.beam > 1 || options.draws()) return search(model, heard, ids, options, run);
  const auto read = ctc->read(heard, run);
  const auto log_p_BSV = ctc->frame_log_probabilities(read);
  auto best_BS = log_p_BSV.amax(-1);
  if (read.mask_BS.defined()) best_BS = best_BS.masked_fill(read.mask_BS.logical_not(), 0);
  const auto scores_B = best_BS.sum(-1, false, torch::kDouble).cpu();
  std::vector<Hypotheses> all;
  for (auto& path : best_paths(log_p_BSV, read.mask_BS)) {
    const auto score = scores_B[static_cast<int64_t>(all.size())].item<double>();
    all.push_back({{std::move(path), score, score}});
  }
  return all;
}

}  // namespace

int64_t edit_distance(const std::vector<int64_t>& one, const std::vector<int64_t>& other) {
  std::vector<int64_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= one.size(); ++i) {
    auto diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const auto changed = diagonal + (one[i - 1] != other[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

MetricNames TranscriptionOptions::metrics() const {
  return {{"token_error_rate", "loss", "accuracy"}, {"token_error_rate", "loss"}};
}

void TranscriptionOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("transcription", model, {{"frame_transcriber", ""}, {"frame_ctc", ""}}, problems);
  width_rule(model, problems);
}

Transcription::Transcription(const TranscriptionOptions& options, const TaskContext& context)
    : OverFrames(options, context, "symbols") {
  for (const auto& [split, part] : data().parts)
    for (const auto& text : part) most_symbols_ = std::max(most_symbols_, static_cast<int64_t>(text.symbols.size()));
}

ModelContext Transcription::context() const {
  ModelContext context;
  context.source_vocabulary = 2;  // the placeholders
  context.target_vocabulary = first_symbol + static_cast<int64_t>(data().symbols.size());
  return context;
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> Transcription::lengths(const std::string& split) const {
  std::vector<int64_t> targets;
  for (const auto& text : part_of(data().parts, split))
    targets.push_back(static_cast<int64_t>(text.symbols.size()) + 1);
  return {frames_of_texts(split), targets};
}

std::string Transcription::target_token(int64_t id) const {
  return id < first_symbol ? "" : data().symbols.at(static_cast<std::size_t>(id - first_symbol));
}

TokenBatch Transcription::collect(const std::string& split, const std::vector<int64_t>& examples,
                                  torch::Device device) const {
  const auto& part = part_of(data().parts, split);
  const auto ids = writes();
  std::vector<std::vector<int64_t>> read;
  std::size_t longest = 0;
  for (const auto number : examples) {
    auto& one = read.emplace_back(ids_of(part[static_cast<std::size_t>(number)].symbols));
    one.insert(one.begin(), ids.bos);
    longest = std::max(longest, one.size());
  }
  std::vector<int64_t> targets, asked;
  for (std::size_t b = 0; b < read.size(); ++b)
    for (std::size_t t = 0; t < read[b].size(); ++t) {
      targets.push_back(t + 1 < read[b].size() ? read[b][t + 1] : ids.eos);
      asked.push_back(static_cast<int64_t>(b * longest + t));
    }
  TokenBatch batch;
  batch.inputs = heard_batch(rows(split, examples, device));
  std::tie(batch.inputs.target_BT, batch.inputs.target_mask_BT) = pad_right(read, ids.pad, device);
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  batch.rows_N = torch::tensor(asked, torch::kLong).to(device);
  return batch;
}

std::vector<std::vector<int64_t>> Transcription::written(Model& model, const std::string& split,
                                                         const std::vector<int64_t>& examples,
                                                         const SearchOptions& options, const Intervention& with) const {
  auto inputs = batch(split, examples, model.device()).inputs;
  inputs.target_BT = inputs.target_mask_BT = Tensor();
  Forward run;
  with.enter(run);
  run.rows_B = torch::tensor(examples, torch::kLong).to(model.device());
  std::vector<std::vector<int64_t>> texts;
  for (const auto& found : hypotheses(model, inputs, writes(), options, run))
    texts.push_back(found.empty() ? std::vector<int64_t>() : found.front().ids);
  return texts;
}

Hypotheses Transcription::transcribe(Model& model, const FrameText& text, const SearchOptions& options,
                                     int64_t number) const {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Forward run;
  run.rows_B = torch::tensor({number}, torch::kLong).to(model.device());
  return hypotheses(model, heard_batch(rows({&text}, model.device())), writes(), options, run).front();
}

std::vector<std::string> Transcription::names(const std::vector<int64_t>& ids) const {
  std::vector<std::string> all;
  for (const auto id : ids) all.push_back(id < first_symbol ? "?" : target_token(id));
  return all;
}

Evaluation Transcription::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(data().parts, options.split);
  const auto metrics = wanted_metrics(*this, options);
  Evaluation result;
  std::map<std::string, double> all;
  const auto wanted = [&](const std::string& metric) {
    return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  };
  if (wanted("loss") || wanted("accuracy")) {
    const auto totals = token_totals(model, *this, options, with);
    all["loss"] = totals.loss();
    all["accuracy"] = totals.accuracy();
  }
  if (wanted("token_error_rate")) {
    const torch::NoGradGuard no_grad;
    const Mode evaluating(model, false);
    std::map<int64_t, std::vector<int64_t>> said;  // by example
    for (const auto& examples : first_batches(*this, options.split, options.limit, options.max_tokens)) {
      const auto texts = written(model, options.split, examples, options.search, with);
      for (std::size_t b = 0; b < examples.size(); ++b) said[examples[b]] = texts[b];
    }
    const auto text_of_ids = [&](const std::vector<int64_t>& ids) {
      std::string text;
      for (const auto& name : names(ids)) text += (text.empty() ? "" : " ") + name;
      return text;
    };
    int64_t edits = 0, symbols = 0;
    for (const auto& [number, text] : said) {
      const auto reference = ids_of(part[static_cast<std::size_t>(number)].symbols);
      edits += edit_distance(text, reference);
      symbols += static_cast<int64_t>(reference.size());
      result.hypotheses.push_back(text_of_ids(text));
      if (static_cast<int64_t>(result.samples.size()) < options.samples)
        result.samples.push_back({"", text_of_ids(reference), result.hypotheses.back()});
    }
    all["token_error_rate"] = static_cast<double>(edits) / static_cast<double>(symbols);
    result.signatures["token_error_rate"] =
        "beam:" + std::to_string(options.search.beam) + "|edits over symbols:" + std::to_string(symbols);
  }
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  return result;
}

}  // namespace headlab
