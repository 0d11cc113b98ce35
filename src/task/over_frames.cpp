#include "src/task/over_frames.h"

#include <algorithm>

#include "modules/embedding/frames.h"
#include "modules/tensor/torch.h"
#include "src/terminal/format.h"

namespace headlab {

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

OverFrames::OverFrames(const OverFramesOptions& options, const TaskContext& context, const std::string& said)
    : data_(frame_source(options.data).load(context.spec_folder, context.seed)) {
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
  int64_t longest = 0, shortest = -1;
  for (const auto number : examples) {
    const auto length = part[static_cast<std::size_t>(number)].length(data_.width);
    longest = std::max(longest, length);
    shortest = shortest < 0 ? length : std::min(shortest, length);
  }
  const auto B = static_cast<int64_t>(examples.size());
  auto frames = torch::zeros({B, longest, data_.width}, torch::kFloat);
  auto places = torch::zeros({B, longest}, torch::kLong);
  for (int64_t b = 0; b < B; ++b) {
    const auto& text = part[static_cast<std::size_t>(examples[static_cast<std::size_t>(b)])];
    std::copy(text.frames.begin(), text.frames.end(), frames.data_ptr<float>() + b * longest * data_.width);
    places[b].slice(0, text.length(data_.width)).fill_(1);
  }
  FrameRows made{frames.to(device), places.to(device), {}};
  if (shortest < longest) made.mask_BT = made.places_BT.eq(0);
  return made;
}

std::string OverFrames::text_of(const std::vector<int64_t>& symbols) const {
  std::string text;
  for (const auto symbol : symbols) text += (text.empty() ? "" : " ") + data_.symbols[static_cast<std::size_t>(symbol)];
  return text;
}

}  // namespace headlab
