#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace headlab {

/// The labels of a task and their numbers, in the order of their bytes.
class Labels {
 public:
  Labels() = default;
  /// Throws Error for a label with a line feed, which file() could not tell from two.
  explicit Labels(const std::set<std::string>& names);
  /// The inverse of file().
  static Labels from_file(const std::string& text);
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  /// Throws Error where there is no such label: `x.tsv:3: unknown label "x" (exists: a, b)`.
  int64_t id(const std::string& name, const std::string& place) const;
  const std::string& name(int64_t id) const { return names_.at(static_cast<std::size_t>(id)); }
  /// A label a line.
  std::string file() const;

 private:
  std::vector<std::string> names_;
};

}  // namespace headlab
