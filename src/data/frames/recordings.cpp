#include "src/data/frames/recordings.h"

#include <set>

#include "modules/base/nearest.h"
#include "src/data/frames/audio.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

constexpr char space_symbol[] = "<space>";

/// The symbols of a text. Words and characters: none of white space alone.
std::vector<std::string> symbols_of(const std::string& text, const std::string& units) {
  std::vector<std::string> symbols;
  if (units == "text" && !text.empty()) symbols = {text};
  if (units == "text") return symbols;
  bool goes_on = false;  // a word, or a text after its first character
  bool spaced = false;
  for (const auto letter : decode_utf8(text)) {
    if (is_space(letter)) {
      spaced = true;
      continue;
    }
    const auto written = encode_utf8(std::u32string_view(&letter, 1));
    if (units == "characters") {
      if (spaced && goes_on) symbols.push_back(space_symbol);
      symbols.push_back(written);
    } else if (spaced || !goes_on) {
      symbols.push_back(written);
    } else {
      symbols.back() += written;
    }
    goes_on = true;
    spaced = false;
  }
  return symbols;
}

/// A recording, as it is joined.
struct Heard {
  FrameText text;
  std::string group;  // recordings of other groups are not joined with it
};

template <class T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::vector<FrameText> joined(const std::vector<Heard>& heard, const JoinOptions& join, int64_t count, Random random,
                              bool test, int64_t between) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < heard.size(); ++i) groups[heard[i].group].push_back(i);
  std::vector<FrameText> texts(static_cast<std::size_t>(count));
  for (auto& text : texts) {
    const std::vector<std::size_t>* group = nullptr;
    for (auto left = join.draw(random, test); left > 0; --left) {
      const auto number = group ? (*group)[random.below(group->size())] : random.below(heard.size());
      const auto& [one, name] = heard[number];
      if (group && between >= 0) text.symbols.push_back(between);
      append(text.frames, one.frames);
      append(text.at_frame, one.at_frame);
      append(text.symbols, one.symbols);
      group = &groups.at(name);
    }
  }
  return texts;
}

}  // namespace

void JoinOptions::describe(Fields& fields) {
  SizeRange::describe(fields);
  fields.add("train", train, "texts to train on")
      .at_least(0)
      .unit("examples")
      .means("0: each recording once, by itself");
  fields.add("valid", valid, "texts for validation").at_least(0).unit("examples");
  fields.add("test", test, "texts for the final evaluation").at_least(0).unit("examples");
  fields.add("within", within, "what joined recordings have in common (speaker)").means("empty: nothing");
  fields.add("seed", seed, "of the draws").at_least(-1).means("-1: the run's seed");
}

void JoinOptions::rules(Problems& problems) const {
  SizeRange::rules(problems);
  for (const auto& [name, count] : {std::pair("train", train), std::pair("valid", valid), std::pair("test", test)})
    if (draws() != (count > 0))
      problems.add(name, "expected texts in all three parts, or 0 in all, got " + std::to_string(count));
  if (!draws() && (largest() > 1 || !within.empty()))
    problems.add("train", "expected how many texts are joined, got 0");
}

void RecordingsOptions::describe(Fields& fields) {
  fields.add("list", list, "which recordings");
  fields.add("text", text, "what is said: the manifest's column, or the part of a name in braces");
  fields.add("written", written, R"(texts to write in place of others: {"0": "zero"})");
  fields.add("units", units, "what a symbol is: the text as a whole, a word or a character")
      .one_of({"text", "words", "characters"});
  fields.add("features", features, "how recordings become frames");
  fields.add("join", join, "several recordings as one text");
}

void RecordingsOptions::rules(Problems& problems) const {
  bool texts = written.is_object();
  for (const auto& [name, value] : written.items()) texts = texts && value.is_string();
  if (!texts) problems.add("written", R"(expected texts by name, {"0": "zero"}, got )" + written.dump());
  const auto known = dynamic_cast<const RecordingList&>(list.options()).knows();
  for (const auto& [field, name] : {std::pair("text", &text), std::pair("join.within", &join.within)})
    if (!known.empty() && !name->empty() && std::find(known.begin(), known.end(), *name) == known.end())
      problems.add(field, "expected a part of the names in braces (" + listed(known) + "), got " + in_quotes(*name));
}

std::vector<float> RecordingsOptions::read(const std::string& path) const {
  const auto audio = read_audio(path);
  if (audio.rate != features.rate)
    throw FileError(path + ": expected " + std::to_string(features.rate) + " samples a second (features.rate), got " +
                    std::to_string(audio.rate) +
                    ": name the rate of all recordings there before training, or convert this one (sox, ffmpeg)");
  return LogMel(features)(audio.samples);
}

std::string RecordingsOptions::text_of(const std::vector<std::string>& symbols) const {
  std::string whole;
  for (const auto& symbol : symbols) {
    if (units != "characters" && !whole.empty()) whole += " ";
    whole += units == "characters" && symbol == space_symbol ? " " : symbol;
  }
  return whole;
}

FrameData RecordingsOptions::load(const std::string& spec_folder, uint64_t run) const {
  const auto parts = dynamic_cast<const RecordingList&>(list.options()).list(spec_folder);
  const auto said_in = [&](const Recording& recording) {
    const auto& name = recording.known.text(text);
    const auto symbols = symbols_of(written.contains(name) ? written.at(name).get<std::string>() : name, units);
    if (symbols.empty() || symbols.front().find('\n') != std::string::npos)
      throw FileError(recording.known.place() + ": expected a text that is said, in one line, got " + in_quotes(name));
    return symbols;
  };
  std::set<std::string> names;
  for (const auto& [part, recordings] : parts)
    for (const auto& recording : recordings)
      for (auto& symbol : said_in(recording)) names.insert(std::move(symbol));
  const bool between = join.draws() && units == "characters";
  if (between) names.insert(space_symbol);
  std::map<std::string, int64_t> numbers;
  for (const auto& name : names) numbers.emplace(name, static_cast<int64_t>(numbers.size()));

  FrameData data{frame_width(), {names.begin(), names.end()}, {}};
  uint64_t stream = 0;
  for (const auto& [part, count] :
       {std::pair("test", join.test), std::pair("valid", join.valid), std::pair("train", join.train)}) {
    std::vector<Heard> heard;
    for (const auto& recording : parts.at(part)) {
      auto& [frames, group] = heard.emplace_back();
      frames.frames = read(recording.path);
      for (const auto& symbol : said_in(recording)) frames.symbols.push_back(numbers.at(symbol));
      if (has_frame_classes())
        frames.at_frame.assign(static_cast<std::size_t>(frames.length(data.width)), frames.symbols.front());
      if (!join.within.empty()) group = recording.known.text(join.within);
    }
    auto& texts = data.parts[part];
    const auto seed = join.seed < 0 ? run : static_cast<uint64_t>(join.seed);
    if (join.draws())
      texts = joined(heard, join, count, Random::stream(seed, {stream++}), std::string(part) == "test",
                     between ? numbers.at(space_symbol) : -1);
    else
      for (auto& one : heard) texts.push_back(std::move(one.text));
  }
  return data;
}

}  // namespace headlab
