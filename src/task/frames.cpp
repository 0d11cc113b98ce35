#include "src/task/frames.h"

#include <algorithm>

#include "modules/embedding/frames.h"
#include "modules/model/frame_encoder.h"
#include "modules/tensor/torch.h"
#include "src/data/frames/symbols.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

// Where frames come from: one line an entry.
struct FrameSource {
  EntryInfo info;
  FrameData (*load)(const Options&, const TaskContext&);
};
const std::vector<FrameSource>& frame_sources() {
  static const std::vector<FrameSource> all{
      {{"phones", "prototypes with noise, a few frames each", "2209.06096", [] { return std::make_shared<PhonesOptions>(); }},
       [](const Options& options, const TaskContext& context) {
         return draw_phones(dynamic_cast<const PhonesOptions&>(options), context.seed);
       }},
      {{"symbols", "the symbols of an exercise, each the sum of its parts", "", [] { return std::make_shared<SymbolFramesOptions>(); }},
       [](const Options& options, const TaskContext& context) {
         return symbol_frames(dynamic_cast<const SymbolFramesOptions&>(options), context.seed);
       }}};
  return all;
}

}  // namespace

const Catalogue& frame_source_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made{"frame_source", "where frames come from", {}};
    for (const auto& source : frame_sources()) made.entries.push_back(source.info);
    return made;
  }();
  return catalogue;
}

FrameData load_frames(const Choice& source, const TaskContext& context) {
  for (const auto& one : frame_sources())
    if (one.info.name == source.type()) return one.load(source.options(), context);
  throw std::logic_error("no frame source " + source.type());
}

FrameRows frame_rows(const std::vector<FrameText>& part, const std::vector<int64_t>& examples, int64_t width, torch::Device device) {
  int64_t longest = 0, shortest = -1;
  for (const auto number : examples) {
    const auto length = part[static_cast<std::size_t>(number)].length(width);
    longest = std::max(longest, length);
    shortest = shortest < 0 ? length : std::min(shortest, length);
  }
  const auto B = static_cast<int64_t>(examples.size());
  auto frames = torch::zeros({B, longest, width}, torch::kFloat);
  auto places = torch::zeros({B, longest}, torch::kLong);
  for (int64_t b = 0; b < B; ++b) {
    const auto& text = part[static_cast<std::size_t>(examples[static_cast<std::size_t>(b)])];
    std::copy(text.frames.begin(), text.frames.end(), frames.data_ptr<float>() + b * longest * width);
    places[b].slice(0, text.length(width)).fill_(1);
  }
  FrameRows made{frames.to(device), places.to(device), {}};
  if (shortest < longest) made.mask_BT = made.places_BT.eq(0);
  return made;
}

void FrameTaskOptions::describe(Fields& fields) {
  fields.add("data", data, "where the frames come from");
  describe_roles(fields);
}

MetricNames FrameTaskOptions::metrics() const {
  return {{"frame_error", "accuracy", "loss"}, {"frame_error", "loss"}};
}

void FrameTaskOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("frames", model, {{"frame_encoder", "tags"}}, problems);
  int64_t width = 0;
  if (const auto* phones = dynamic_cast<const PhonesOptions*>(&data.options())) width = phones->width;
  if (const auto* symbols = dynamic_cast<const SymbolFramesOptions*>(&data.options())) width = symbol_frame_width(*symbols);
  if (const auto* own = dynamic_cast<const FrameEncoderOptions*>(&model.options()); own && width > 0 && own->embedding.frame_width != width)
    problems.add("model.embedding.frame_width", "expected the width of the task's frames (" + std::to_string(width) + "), got " +
                                                    std::to_string(own->embedding.frame_width));
}

FrameTask::FrameTask(const FrameTaskOptions& options, const TaskContext& context) : data_(load_frames(options.data, context)) {
  std::string counts;
  for (const auto& split : split_names()) {
    const auto& part = data_.parts.at(split);
    int64_t frames = 0;
    for (const auto& text : part) frames += text.length(data_.width);
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(part.size()));
    report_[split] = {{"texts", part.size()}, {"frames", frames}};
  }
  report_["classes"] = data_.symbols.size();
  summary_ = options.data.type() + ": " + counts + " texts of frames, " + std::to_string(data_.symbols.size()) + " classes";
}

ModelContext FrameTask::context() const {
  ModelContext context;
  context.source_vocabulary = context.target_vocabulary = 2;  // the placeholders
  context.classes = static_cast<int64_t>(data_.symbols.size());
  return context;
}

int64_t FrameTask::longest() const {
  int64_t longest = 0;
  for (const auto& [split, part] : data_.parts)
    for (const auto& text : part) longest = std::max(longest, text.length(data_.width));
  return longest;
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> FrameTask::lengths(const std::string& split) const {
  std::vector<int64_t> lengths;
  for (const auto& text : part_of(data_.parts, split)) lengths.push_back(text.length(data_.width));
  return {{}, lengths};
}

TokenBatch FrameTask::collect(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const {
  const auto& part = part_of(data_.parts, split);
  const auto rows = frame_rows(part, examples, data_.width, device);
  const auto T = rows.places_BT.size(1);
  std::vector<int64_t> targets, asked;
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const auto& classes = part[static_cast<std::size_t>(examples[b])].at_frame;
    for (std::size_t t = 0; t < classes.size(); ++t) {
      if (classes[t] < 0) continue;  // nothing is asked there
      asked.push_back(static_cast<int64_t>(b) * T + static_cast<int64_t>(t));
      targets.push_back(classes[t]);
    }
  }
  TokenBatch batch;
  batch.inputs.target_BT = rows.places_BT;
  batch.inputs.target_mask_BT = rows.mask_BT;
  batch.inputs.side[frames_name] = rows.frames_BTF;
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  batch.rows_N = torch::tensor(asked, torch::kLong).to(device);
  return batch;
}

Evaluation FrameTask::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(data_.parts, options.split);
  const auto metrics = wanted_metrics(*this, options);
  TokenTotals totals;
  std::map<int64_t, std::string> said_of;  // by example
  const auto written = [&](std::string& text, int64_t symbol) { text += (text.empty() ? "" : " ") + data_.symbols[static_cast<std::size_t>(symbol)]; };
  for_each_batch(model, *this, options, with, [&](const TokenBatch& batch, const Tensor& logits) {
    totals.add(batch, logits);
    const auto best = logits.argmax(-1).cpu();
    const auto* at = best.data_ptr<int64_t>();
    for (const auto number : batch.examples)
      for (const auto right : part[static_cast<std::size_t>(number)].at_frame)
        if (right >= 0) written(said_of[number], *at++);
  });
  Evaluation result;
  for (const auto& [number, said] : said_of) {
    result.hypotheses.push_back(said);
    if (static_cast<int64_t>(result.samples.size()) >= options.samples) continue;
    Sample sample;
    for (const auto symbol : part[static_cast<std::size_t>(number)].at_frame)
      if (symbol >= 0) written(sample.reference, symbol);
    sample.hypothesis = said;
    result.samples.push_back(sample);
  }
  const std::map<std::string, double> all{{"loss", totals.loss()}, {"accuracy", totals.accuracy()}, {"frame_error", 1 - totals.accuracy()}};
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  return result;
}

}  // namespace headlab
