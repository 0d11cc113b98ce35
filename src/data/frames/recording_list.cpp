#include "src/data/frames/recording_list.h"

#include <charconv>
#include <filesystem>
#include <regex>

#include "modules/base/nearest.h"
#include "src/data/paths.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using RecordingParts = std::map<std::string, std::vector<Recording>>;

/// "corpus/{digit}_{speaker}.wav": the folder, the names in braces, and an expression that the rest of a path matches.
/// What stands for {digit} or {speaker} holds no sign that comes after one of them (_ and .), and no /.
struct NamePattern {
  std::string folder, rest, expression, fault;
  std::vector<std::string> names;
};

std::string escaped(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return (code < 128 && !std::isalnum(code) ? "\\" : "") + std::string(1, letter);
}

NamePattern name_pattern(const std::string& written) {
  NamePattern pattern;
  const auto brace = written.find('{');
  const auto slash = brace == std::string::npos ? brace : written.rfind('/', brace);
  if (slash != std::string::npos) pattern.folder = written.substr(0, slash + 1);
  pattern.rest = written.substr(pattern.folder.size());
  const auto& rest = pattern.rest;
  std::string ends = "/";
  for (std::size_t at = 0; at + 1 < rest.size(); ++at)
    if (rest[at] == '}') ends += escaped(rest[at + 1]);
  for (std::size_t at = 0; at < rest.size(); ++at) {
    if (rest[at] != '{') {
      pattern.expression += escaped(rest[at]);
      continue;
    }
    const auto end = rest.find('}', at);
    if (end == std::string::npos) return pattern.fault = "expected a } after each {, got none", pattern;
    if (end + 1 == rest.size() || rest[end + 1] == '{')
      pattern.fault = "expected a sign after each }, at which its part of the name ends, got none";
    pattern.expression += "([^" + ends + "]+)";
    pattern.names.push_back(rest.substr(at + 1, end - at - 1));
    at = end;
  }
  if (pattern.names.empty()) pattern.fault = "expected parts of the name in braces, such as {text}, got none";
  for (std::size_t i = 0; i < pattern.names.size(); ++i)
    if (pattern.names[i].empty() || std::count(pattern.names.begin(), pattern.names.end(), pattern.names[i]) > 1)
      pattern.fault = "expected a name of its own in each {}, got {" + pattern.names[i] + "}";
  return pattern;
}

/// "5-12" or "7".
std::optional<std::pair<int64_t, int64_t>> numbers_of(const std::string& item) {
  const auto number = [](std::string_view digits) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
    return value;
  };
  const auto dash = item.find('-');
  const auto first = number(std::string_view(item).substr(0, dash));
  const auto last = dash == std::string::npos ? first : number(std::string_view(item).substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

/// Whether a value can be of both.
bool overlap(const std::string& one, const std::string& other) {
  const auto a = numbers_of(one), b = numbers_of(other);
  return a && b ? std::max(a->first, b->first) <= std::min(a->second, b->second) : one == other;
}

void refuse_empty_parts(const RecordingParts& parts, const std::string& where) {
  for (const auto* part : {"train", "valid", "test"})
    if (const auto found = parts.find(part); found == parts.end() || found->second.empty())
      throw FileError(where + ": expected recordings of each part, got none of " + part);
}

}  // namespace

const Catalogue& recording_list_catalogue() {
  static const Catalogue catalogue{
      "recording_list",
      "which recordings there are, and what is known of each",
      {{"manifest", "tables of recordings", "", [] { return std::make_shared<ManifestOptions>(); }},
       {"file_names", "recordings whose names say what they are", "",
        [] { return std::make_shared<FileNamesOptions>(); }}}};
  return catalogue;
}

void ManifestOptions::describe(Fields& fields) {
  describe_files(fields);
  fields.add("part", part, "the column that says train, valid or test; the table is then that of `train`")
      .means("empty: by files and shares");
  fields.add("file", file, "the column of the recording's name");
  fields.add("folder", folder, "where the recordings lie, from the folder of their table");
}

void ManifestOptions::rules(Problems& problems) const {
  if (!part.empty() && (valid || test))
    problems.add(valid ? "valid" : "test",
                 "expected one table, in which the column " + in_quotes(part) + " tells the parts");
}

RecordingParts ManifestOptions::list(const std::string& spec_folder) const {
  const auto read = [&](const std::string& path) {
    std::vector<Recording> recordings;
    const auto beside = fs::path(path).parent_path() / folder;
    for (const auto& row :
         fs::path(path).extension() == ".jsonl" ? read_jsonl(path) : read_tsv(path, /*header=*/true)) {
      const auto recording = (beside / row.text(file)).string();
      if (std::error_code none; !fs::is_regular_file(recording, none))
        throw FileError(row.place() + ": no such file: " + recording);
      recordings.push_back({recording, row});
    }
    return recordings;
  };
  if (part.empty()) return read_splits<Recording>(*this, spec_folder, read);
  RecordingParts parts{{"train", {}}, {"valid", {}}, {"test", {}}};
  for (auto& recording : read(resolve_data_path(train, spec_folder))) {
    const auto found = parts.find(recording.known.text(part));
    if (found == parts.end())
      throw FileError(recording.known.place() + ": field " + in_quotes(part) + ": expected train, valid or test, got " +
                      in_quotes(recording.known.text(part)));
    found->second.push_back(std::move(recording));
  }
  refuse_empty_parts(parts, train);
  return parts;
}

void FileNamesOptions::describe(Fields& fields) {
  fields
      .add("names", names,
           "a path with parts in braces, each of which ends at the sign after it; the folder before "
           "them is looked for beside the spec and in HEADLAB_DATA")
      .required()
      .means("corpus/{text}_{speaker}_{take}.wav: files of that folder that end in .wav");
  fields.add("by", by, "the part of a name that decides whether it is of train, valid or test").required();
  const auto* const items = "values, or ranges of whole numbers such as 5-12";
  fields.add("train", train, items).required();
  fields.add("valid", valid, items).required();
  fields.add("test", test, items).required();
}

void FileNamesOptions::rules(Problems& problems) const {
  const auto pattern = name_pattern(names);
  if (!pattern.fault.empty()) return problems.add("names", pattern.fault);
  if (std::find(pattern.names.begin(), pattern.names.end(), by) == pattern.names.end())
    problems.add("by", "expected a part of the names in braces (" + listed(pattern.names) + "), got " + in_quotes(by));
  const std::vector<std::pair<std::string, const std::vector<std::string>*>> parts{
      {"train", &train}, {"valid", &valid}, {"test", &test}};
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = i + 1; j < parts.size(); ++j)
      for (const auto& one : *parts[i].second)
        for (const auto& other : *parts[j].second)
          if (overlap(one, other))
            problems.add(parts[j].first, "expected other values than " + parts[i].first + " has, got " +
                                             in_quotes(other) + " beside " + in_quotes(one));
}

std::vector<std::string> FileNamesOptions::knows() const { return name_pattern(names).names; }

RecordingParts FileNamesOptions::list(const std::string& spec_folder) const {
  const auto pattern = name_pattern(names);
  const std::regex expression(pattern.expression);
  const auto root = resolve_data_folder(pattern.folder.empty() ? "." : pattern.folder, spec_folder);
  std::vector<fs::path> files;
  const auto depth = std::count(pattern.rest.begin(), pattern.rest.end(), '/');
  const auto ending = pattern.rest.substr(pattern.rest.rfind('}') + 1);
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto name = entry.path().lexically_relative(root).generic_string();
    if (entry.is_regular_file() && name.ends_with(ending) && std::count(name.begin(), name.end(), '/') == depth)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  RecordingParts parts;
  for (const auto& file : files) {
    const auto name = file.lexically_relative(root).generic_string();
    std::smatch match;
    if (!std::regex_match(name, match, expression))
      throw FileError(file.string() + ": expected a name like " + pattern.rest +
                      ", where no part holds a sign that ends one; name the recordings by a manifest");
    std::map<std::string, std::string> known;
    for (std::size_t i = 0; i < pattern.names.size(); ++i) known[pattern.names[i]] = match[i + 1].str();
    const auto& value = known.at(by);
    for (const auto& [part, items] : {std::pair("train", &train), std::pair("valid", &valid), std::pair("test", &test)})
      if (std::any_of(items->begin(), items->end(), [&](const std::string& item) { return overlap(item, value); }))
        parts[part].push_back({file.string(), Record(file.string(), known)});
  }
  refuse_empty_parts(parts, names);
  return parts;
}

}  // namespace headlab
