#include "src/data/generated/generate.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"

namespace headlab {
namespace {

// What a model reads of an example, as a key.
std::string key_of(const GeneratedExample& example, Form form) {
  std::string key;
  const auto add = [&](const std::vector<int32_t>& symbols) {
    key.append(reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(int32_t));
    key += '|';
  };
  add(example.source);
  if (form == Form::pair) return key;  // the source alone: targets of known sources would be leaks
  add(example.read);
  add(example.answer);
  return key;
}

nlohmann::ordered_json texts_of(const std::vector<int32_t>& ids, const Symbols& symbols) {
  auto texts = nlohmann::ordered_json::array();
  for (const auto id : ids) {
    if (id == GeneratedExample::none)
      texts.push_back(nullptr);
    else
      texts.push_back(symbols.name(id));
  }
  return texts;
}

}  // namespace

void GeneratedOptions::describe(Fields& fields) {
  fields.add("exercise", exercise, "what is written");
  fields.add("train", train, "examples to train on").at_least(1).unit("examples");
  fields.add("valid", valid, "examples for validation").at_least(1).unit("examples");
  fields.add("test", test, "examples for the final evaluation").at_least(1).unit("examples");
  fields.add("seed", seed, "of all draws").at_least(-1).means("-1: the run's seed, where a task draws the data");
}

GeneratedData generate(const GeneratedOptions& options) {
  const auto generator = generators().make(options.exercise);
  GeneratedData data{generator->symbols(), generator->form(), generator->classes(), {}};
  std::unordered_set<std::string> seen;  // in test and valid, which are drawn first
  uint64_t stream = 0;
  for (const auto& [name, count] :
       {std::pair<std::string, int64_t>{"test", options.test}, {"valid", options.valid}, {"train", options.train}}) {
    auto random = Random::stream(static_cast<uint64_t>(options.seed), {stream++});
    auto& part = data.parts[name];
    int64_t refused = 0;
    while (static_cast<int64_t>(part.size()) < count) {
      auto example = generator->draw(random, name == "test");
      const auto key = key_of(example, data.form);
      const bool fresh = name == "train" ? !seen.count(key) : seen.insert(key).second;
      if (fresh) {
        part.push_back(std::move(example));
        refused = 0;
      } else if (++refused == 10000) {
        throw UsageError("exercise " + options.exercise.type() + ": expected " + std::to_string(count) +
                         " examples for " + name + " that other parts lack, found " + std::to_string(part.size()) +
                         "; ask for fewer, or make the exercise larger (more symbols, longer texts)");
      }
    }
  }
  return data;
}

void write_generated(const GeneratedOptions& options, const std::string& directory) {
  const auto data = generate(options);
  const std::filesystem::path folder(directory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(directory + ": cannot be made: " + error.message());
  nlohmann::ordered_json about{
      {"exercise", options.exercise.type()}, {"seed", options.seed}, {"symbols", data.symbols.names()}};
  for (const auto& [name, part] : data.parts) {
    std::string lines;
    for (const auto& example : part) {
      nlohmann::ordered_json line;
      if (data.form == Form::pair) {
        line = {{"source", texts_of(example.source, data.symbols)}, {"target", texts_of(example.read, data.symbols)}};
      } else if (data.form == Form::label) {
        line = {{"read", texts_of(example.read, data.symbols)},
                {"label", data.classes.at(static_cast<std::size_t>(example.answer.front()))}};
      } else {
        line = {{"read", texts_of(example.read, data.symbols)}, {"answer", texts_of(example.answer, data.symbols)}};
      }
      lines += line.dump() + "\n";
    }
    about[name] = part.size();
    write_file_atomically(folder / (name + ".jsonl"), lines);
  }
  write_file_atomically(folder / "data.json", about.dump(2) + "\n");
}

}  // namespace headlab
