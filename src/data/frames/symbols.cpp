#include "src/data/frames/symbols.h"

#include "modules/base/error.h"

namespace headlab {
namespace {

std::vector<std::string> parts_of_symbol(const std::string& symbol) {
  const auto equals = symbol.find('=');
  if (equals == std::string::npos) return {symbol};
  return {symbol.substr(0, equals), symbol.substr(equals + 1)};
}

/// The number of each part, in the order in which symbols have them; the special symbols are none.
std::map<std::string, int64_t> numbers_of_parts(const Symbols& symbols, std::vector<std::string>& names) {
  std::map<std::string, int64_t> numbers;
  for (int32_t id = Symbols::eos + 1; id < symbols.size(); ++id)
    for (const auto& part : parts_of_symbol(symbols.name(id)))
      if (numbers.emplace(part, static_cast<int64_t>(names.size())).second) names.push_back(part);
  return numbers;
}

}  // namespace

void SymbolFramesOptions::rules(Problems& problems) const {
  if (dynamic_cast<const GeneratorOptions&>(exercise.options()).form() != Form::aligned)
    problems.add("exercise", "expected one that asks at its symbols (paired_recall, offsets), got " + exercise.type());
}

FrameData SymbolFramesOptions::load(const std::string&, uint64_t run) const { return symbol_frames(*this, run); }

int64_t SymbolFramesOptions::frame_width() const { return symbol_frame_width(*this); }

FrameData symbol_frames(const SymbolFramesOptions& options, uint64_t run) {
  GeneratedOptions drawn = options;
  if (drawn.seed < 0) drawn.seed = static_cast<int64_t>(run);
  const auto data = generate(drawn);
  FrameData made;
  const auto numbers = numbers_of_parts(data.symbols, made.symbols);
  made.width = static_cast<int64_t>(made.symbols.size());
  for (const auto& [name, examples] : data.parts)
    for (const auto& example : examples) {
      FrameText text;
      text.frames.assign(example.read.size() * static_cast<std::size_t>(made.width), 0.0F);
      for (std::size_t t = 0; t < example.read.size(); ++t) {
        for (const auto& part : parts_of_symbol(data.symbols.name(example.read[t])))
          text.frames[t * static_cast<std::size_t>(made.width) + static_cast<std::size_t>(numbers.at(part))] = 1.0F;
        const auto answer = example.answer[t];
        text.at_frame.push_back(answer == GeneratedExample::none ? -1 : numbers.at(data.symbols.name(answer)));
      }
      made.parts[name].push_back(std::move(text));
    }
  return made;
}

int64_t symbol_frame_width(const SymbolFramesOptions& options) {
  std::vector<std::string> names;
  numbers_of_parts(generators().make(options.exercise)->symbols(), names);
  return static_cast<int64_t>(names.size());
}

}  // namespace headlab
