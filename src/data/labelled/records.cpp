#include "src/data/labelled/records.h"

#include <charconv>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/data/labelled/conll.h"
#include "src/text/lines.h"

namespace headlab {

const std::string& Record::text(const std::string& field) const {
  const auto found = texts_.find(field);
  if (found != texts_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, text] : texts_) names.push_back(name);
  throw FileError(place_ + ": expected a field " + in_quotes(field) + " with a text, got: " + listed(names));
}

int64_t Record::number(const std::string& field) const {
  const auto& digits = text(field);
  int64_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
    throw FileError(place_ + ": field " + in_quotes(field) + ": expected a whole number of at least 0, got " +
                    in_quotes(digits));
  return value;
}

std::vector<Record> read_jsonl(const std::string& path) {
  LineReader reader(path);
  std::vector<Record> rows;
  for (std::string line; reader.next(line);) {
    reader.refuse_fault();
    if (reader.fault() == LineFault::empty) continue;
    const auto place = path + ":" + std::to_string(reader.counts().lines);
    nlohmann::json value;
    try {
      value = nlohmann::json::parse(line);
    } catch (const nlohmann::json::parse_error& error) {
      throw FileError(place + ":" + std::to_string(error.byte) + ": expected a JSON object, got text that is not JSON");
    } catch (const nlohmann::json::out_of_range&) {
      throw FileError(place + ": expected numbers that a double holds, got a larger one");
    }
    if (!value.is_object()) throw FileError(place + ": expected a JSON object, got " + value.type_name());
    std::map<std::string, std::string> texts;
    for (const auto& [name, field] : value.items()) {
      if (field.is_string()) texts[name] = field.get<std::string>();
      if (field.is_number() || field.is_boolean()) texts[name] = field.dump();
    }
    rows.emplace_back(place, std::move(texts));
  }
  if (rows.empty()) throw FileError(path + ": expected a JSON object a line, got none");
  return rows;
}

std::vector<Record> read_tsv(const std::string& path, bool header) {
  LineReader reader(path);
  std::vector<Record> rows;
  std::vector<std::string> names;
  for (std::string line; reader.next(line);) {
    reader.refuse_fault();
    if (reader.fault() == LineFault::empty) continue;
    const auto cells = split_at_tabs(line);
    if (names.empty()) {
      names = cells;
      if (!header)
        for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i + 1);
      if (header) continue;
    }
    const auto place = path + ":" + std::to_string(reader.counts().lines);
    if (cells.size() != names.size())
      throw FileError(place + ": expected " + std::to_string(names.size()) + " columns between tabs, got " +
                      std::to_string(cells.size()));
    std::map<std::string, std::string> texts;
    for (std::size_t i = 0; i < names.size(); ++i) texts[names[i]] = cells[i];
    rows.emplace_back(place, std::move(texts));
  }
  if (rows.empty()) throw FileError(path + ": expected rows of columns between tabs, got none");
  return rows;
}

}  // namespace headlab
