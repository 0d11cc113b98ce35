#include "src/task/transcription.h"

#include <algorithm>
#include <numeric>

#include "modules/embedding/frames.h"
#include "modules/model/frame_transcriber.h"
#include "modules/tensor/torch.h"
#include "src/decode/pad.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

constexpr int64_t first_symbol = 4;  // after pad, unk, bos and eos

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

void TranscriptionOptions::describe(Fields& fields) {
  fields.add("data", data, "where the frames come from");
  describe_roles(fields);
}

MetricNames TranscriptionOptions::metrics() const {
  return {{"token_error_rate", "loss", "accuracy"}, {"token_error_rate", "loss"}};
}

void TranscriptionOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("transcription", model, {{"frame_transcriber", ""}}, problems);
  const auto* phones = dynamic_cast<const PhonesOptions*>(&data.options());
  if (const auto* own = dynamic_cast<const FrameTranscriberOptions*>(&model.options()); phones && own && own->frame_width != phones->width)
    problems.add("model.frame_width",
                 "expected the width of the task's frames (" + std::to_string(phones->width) + "), got " + std::to_string(own->frame_width));
}

Transcription::Transcription(const TranscriptionOptions& options, const TaskContext& context) : data_(load_frames(options.data, context)) {
  std::string counts;
  for (const auto& split : split_names()) {
    const auto& part = data_.parts.at(split);
    int64_t frames = 0, symbols = 0;
    for (const auto& text : part) {
      frames += text.length(data_.width);
      symbols += static_cast<int64_t>(text.symbols.size());
      most_symbols_ = std::max(most_symbols_, static_cast<int64_t>(text.symbols.size()));
    }
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(part.size()));
    report_[split] = {{"texts", part.size()}, {"frames", frames}, {"symbols", symbols}};
  }
  report_["symbols"] = data_.symbols.size();
  summary_ = options.data.type() + ": " + counts + " texts of frames, " + std::to_string(data_.symbols.size()) + " symbols";
}

ModelContext Transcription::context() const {
  ModelContext context;
  context.source_vocabulary = 2;  // the placeholders
  context.target_vocabulary = first_symbol + static_cast<int64_t>(data_.symbols.size());
  return context;
}

int64_t Transcription::longest() const {
  int64_t longest = most_symbols_ + 1;
  for (const auto& [split, part] : data_.parts)
    for (const auto& text : part) longest = std::max(longest, text.length(data_.width));
  return longest;
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> Transcription::lengths(const std::string& split) const {
  std::vector<int64_t> sources, targets;
  for (const auto& text : part_of(data_.parts, split)) {
    sources.push_back(text.length(data_.width));
    targets.push_back(static_cast<int64_t>(text.symbols.size()) + 1);
  }
  return {sources, targets};
}

std::string Transcription::target_token(int64_t id) const {
  return id < first_symbol ? "" : data_.symbols.at(static_cast<std::size_t>(id - first_symbol));
}

TokenBatch Transcription::collect(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const {
  const auto& part = part_of(data_.parts, split);
  const auto ids = writes();
  const auto rows = frame_rows(part, examples, data_.width, device);
  std::vector<std::vector<int64_t>> read;
  std::size_t longest = 0;
  for (const auto number : examples) {
    auto& one = read.emplace_back(std::vector<int64_t>{ids.bos});
    for (const auto symbol : part[static_cast<std::size_t>(number)].symbols) one.push_back(first_symbol + symbol);
    longest = std::max(longest, one.size());
  }
  std::vector<int64_t> targets, asked;
  for (std::size_t b = 0; b < read.size(); ++b)
    for (std::size_t t = 0; t < read[b].size(); ++t) {
      targets.push_back(t + 1 < read[b].size() ? read[b][t + 1] : ids.eos);
      asked.push_back(static_cast<int64_t>(b * longest + t));
    }
  TokenBatch batch;
  batch.inputs.source_BS = rows.places_BT;
  batch.inputs.source_mask_BS = rows.mask_BT;
  batch.inputs.side[frames_name] = rows.frames_BTF;
  std::tie(batch.inputs.target_BT, batch.inputs.target_mask_BT) = pad_right(read, ids.pad, device);
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  batch.rows_N = torch::tensor(asked, torch::kLong).to(device);
  return batch;
}

/// The most probable symbol, one after another, until each row wrote eos or as many as a text may have; pad, unk and bos are never written.
std::vector<std::vector<int64_t>> Transcription::written(Model& model, const Batch& batch, const Intervention& with) const {
  const auto ids = writes();
  Forward run;
  with.enter(run);
  const auto stepper = model.stepper(batch, run);
  const auto B = batch.source_BS.size(0);
  std::vector<std::vector<int64_t>> texts(static_cast<std::size_t>(B));
  std::vector<bool> over(texts.size(), false);
  auto next = torch::full({B, 1}, ids.bos, torch::dtype(torch::kLong).device(model.device()));
  const auto most = std::min(2 * most_symbols_, model.max_length());
  for (int64_t t = 0; t < most && std::find(over.begin(), over.end(), false) != over.end(); ++t) {
    const auto best = stepper->step(next, run).slice(1, ids.eos).argmax(1) + ids.eos;
    next = best.unsqueeze(1);
    const auto on_cpu = best.cpu();
    for (std::size_t b = 0; b < texts.size(); ++b) {
      const auto id = on_cpu.const_data_ptr<int64_t>()[b];
      over[b] = over[b] || id == ids.eos;
      if (!over[b]) texts[b].push_back(id - first_symbol);
    }
  }
  return texts;
}

Evaluation Transcription::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(data_.parts, options.split);
  const auto metrics = wanted_metrics(*this, options);
  Evaluation result;
  std::map<std::string, double> all;
  const auto wanted = [&](const std::string& metric) { return std::find(metrics.begin(), metrics.end(), metric) != metrics.end(); };
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
      const auto texts = written(model, batch(options.split, examples, model.device()).inputs, with);
      for (std::size_t b = 0; b < examples.size(); ++b) said[examples[b]] = texts[b];
    }
    const auto text_of = [&](const std::vector<int64_t>& symbols) {
      std::string text;
      for (const auto symbol : symbols) text += (text.empty() ? "" : " ") + data_.symbols[static_cast<std::size_t>(symbol)];
      return text;
    };
    int64_t edits = 0, symbols = 0;
    for (const auto& [number, text] : said) {
      const auto& reference = part[static_cast<std::size_t>(number)].symbols;
      edits += edit_distance(text, reference);
      symbols += static_cast<int64_t>(reference.size());
      result.hypotheses.push_back(text_of(text));
      if (static_cast<int64_t>(result.samples.size()) < options.samples) result.samples.push_back({"", text_of(reference), result.hypotheses.back()});
    }
    all["token_error_rate"] = static_cast<double>(edits) / static_cast<double>(symbols);
    result.signatures["token_error_rate"] = "greedy|edits over symbols:" + std::to_string(symbols);
  }
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  return result;
}

}  // namespace headlab
