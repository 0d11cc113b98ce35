#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headlab {

/// One record of a file of records: texts by the name of their field, and where it stands.
class Record {
 public:
  Record(std::string place, std::map<std::string, std::string> texts)
      : place_(std::move(place)), texts_(std::move(texts)) {}
  /// The text of a field. Throws FileError where there is none: `x.jsonl:3: expected a field "label", got: text,
  /// class`.
  const std::string& text(const std::string& field) const;
  /// The field as a number of characters. Throws FileError for anything but a whole number of at least 0.
  int64_t number(const std::string& field) const;
  const std::string& place() const { return place_; }  // "x.jsonl:3"

 private:
  std::string place_;
  std::map<std::string, std::string> texts_;
};

/// A JSON object a line; blank lines are passed over. Strings are texts; numbers, true and false are texts as they are
/// written in JSON; lists, objects and null are no texts. Throws FileError with file, line and column for what is not
/// JSON.
std::vector<Record> read_jsonl(const std::string& path);

/// Columns between tabs, without quoting. `header`: the first line names the columns; without, they are "1", "2", ...
/// Throws FileError where a line has another number of columns than the first.
std::vector<Record> read_tsv(const std::string& path, bool header);

}  // namespace headlab
