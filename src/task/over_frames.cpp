#include "src/task/over_frames.h"

#include <algorithm>
#include <sstream>

#include "modules/base/nearest.h"
#include "modules/embedding/frames.h"
#include "modules/tensor/torch.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

constexpr char symbols_file[] = "symbols.model";  // a symbol a line

/// The data with the numbers that `symbols` have, those that a model learned. Throws Error for a symbol that is new.
void renumber(FrameData& data, const std::vector<std::string>& symbols) {
  if (data.symbols == symbols) return;
  std::vector<int64_t> numbers;
  for (const auto& symbol : data.symbols) {
    const auto found = std::find(symbols.begin(), symbols.end(), symbol);
    if (found == symbols.end()) throw Error("task.data: " + unknown_name("symbol", symbol, symbols));
    numbers.push_back(found - symbols.begin());
  }
  for (auto& [split, part] : data.parts)
    for (auto& text : part)
      for (auto* classes : {&text.at_frame, &text.symbols})
        for (auto& number : *classes)
          if (number >= 0) number = numbers[static_cast<std::size_t>(number)];
  data.symbols = symbols;
}

}  // namespace

void OverFramesOptions::describe_data(Fields& fields) {
  fields.add("data", data, "where the frames come from");
  describe_roles(fields);
}

void OverFramesOptions::width_rule(const Choice& model, Problems& problems) const {
  const auto* reader = dynamic_cast<const ReadsFrames*>(&model.options());
  if (!reader) return;
  const auto width = frame_source(data).frame_width();
  if (const auto [field, own] = reader->width_of_frames(); own != width)
    problems.add("model." + field,
                 "expected the width of the task's frames (" + std::to_string(width) + "), got " + std::to_string(own));
}

OverFrames::OverFrames(const OverFramesOptions& options, const TaskContext& context, const std::string& said) {
  const auto& source = frame_source(options.data);
  std::vector<std::string> saved;
  const auto* file = context.file(symbols_file);
  if (file) {
    std::istringstream lines(*file);
    for (std::string line; std::getline(lines, line);) saved.push_back(line);
  }
  if (file && !context.reads_data) {
    data_ = {source.frame_width(), saved, {}};
    return;
  }
  data_ = source.load(context.spec_folder, context.seed);
  if (file) renumber(data_, saved);
  std::string counts;
  for (const auto& split : split_names()) {
    int64_t frames = 0, symbols = 0;
    const auto& part = data_.parts.at(split);
    for (const auto& text : part) {
      frames += text.length(data_.width);
      symbols += static_cast<int64_t>(text.symbols.size());
    }
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(part.size()));
    report_[split] = {{"texts", part.size()}, {"frames", frames}, {"symbols", symbols}};
  }
  report_[said] = data_.symbols.size();
  summary_ =
      options.data.type() + ": " + counts + " texts of frames, " + std::to_string(data_.symbols.size()) + " " + said;
}

int64_t OverFrames::longest() const {
  int64_t longest = 0;
  for (const auto& [split, part] : data_.parts)
    for (const auto& text : part) longest = std::max(longest, text.length(data_.width));
  return longest;
}

std::vector<int64_t> OverFrames::frames_of_texts(const std::string& split) const {
  std::vector<int64_t> lengths;
  for (const auto& text : part_of(data_.parts, split)) lengths.push_back(text.length(data_.width));
  return lengths;
}

FrameRows OverFrames::rows(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const {
  const auto& part = part_of(data_.parts, split);
  std::vector<const FrameText*> texts;
  for (const auto number : examples) texts.push_back(&part[static_cast<std::size_t>(number)]);
  return rows(texts, device);
}

FrameRows OverFrames::rows(const std::vector<const FrameText*>& texts, torch::Device device) const {
  int64_t longest = 0, shortest = -1;
  for (const auto* text : texts) {
    const auto length = text->length(data_.width);
    longest = std::max(longest, length);
    shortest = shortest < 0 ? length : std::min(shortest, length);
  }
  const auto B = static_cast<int64_t>(texts.size());
  auto frames = torch::zeros({B, longest, data_.width}, torch::kFloat);
  auto places = torch::zeros({B, longest}, torch::kLong);
  for (int64_t b = 0; b < B; ++b) {
    const auto& text = *texts[static_cast<std::size_t>(b)];
    std::copy(text.frames.begin(), text.frames.end(), frames.data_ptr<float>() + b * longest * data_.width);
    places[b].slice(0, text.length(data_.width)).fill_(1);
  }
  FrameRows made{frames.to(device), places.to(device), {}};
  if (shortest < longest) made.mask_BT = made.places_BT.eq(0);
  return made;
}

std::map<std::string, std::string> OverFrames::files() const {
  std::string lines;
  for (const auto& symbol : data_.symbols) lines += symbol + "\n";
  return {{symbols_file, lines}};
}

std::string OverFrames::text_of(const std::vector<int64_t>& symbols) const {
  std::string text;
  for (const auto symbol : symbols) text += (text.empty() ? "" : " ") + data_.symbols[static_cast<std::size_t>(symbol)];
  return text;
}

}  // namespace headlab
