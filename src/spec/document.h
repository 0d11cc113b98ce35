#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headlab {

/// Where a piece of a spec was written: in a file, or by `--set key.path=value`.
struct Place {
  struct Source {
    std::string name;   // "experiments/x.json", "--set model.width=3"
    std::string path;   // the key that an override sets; empty for a file
    int64_t order = 0;  // files first, then overrides as they were given
  };
  std::shared_ptr<const Source> source;
  int64_t line = 0, column = 0;  // from 1, in characters; 0 for an override, which has one place only

  std::string text() const;  // "experiments/x.json:14:9", "--set model.width=3"
  bool operator<(const Place& other) const;
};

/// One mistake of a spec. `path` is the field: "model.encoder.heads", "stages[3].prune.fraction"; empty for the whole.
struct Mistake {
  Place place;
  std::string path, message;
  std::string text() const;  // file:line:column: path: message
};

/// A value of a JSON text, with its place.
struct Node {
  enum class Kind { null, boolean, number, string, list, object };
  struct Member;

  Kind kind = Kind::null;
  Place at;  // of its first character
  bool boolean = false;
  bool implied = false;  // an object that an override made on its way to a deeper key
  double number = 0;
  std::optional<int64_t> integer;  // of a number that is an integer within 64 bits, however written: 1000, 1e3, 10.0
  std::string text;                // of a string: what it says; of a number: as written
  std::vector<Node> items;         // of a list
  std::vector<Member> members;     // of an object, as written

  const Node* find(const std::string& key) const;  // the first member of this name; nullptr where there is none
  Node* find(const std::string& key);
  std::string got() const;  // for messages: `"half"`, `3`, `null`, `a list`, `an object`
};

struct Node::Member {
  std::string key;
  Place at;  // of the key
  Node value;
  std::optional<Place> first;  // of a repeated key: where it stood first
};

/// A JSON text that remembers where each key and value stands. Strict: UTF-8 (a byte order mark is skipped), no
/// comments, no trailing commas, nesting up to 100. Repeated keys are kept and reported by read().
class Document {
 public:
  /// Throws SpecErrors with the place of the first syntax error.
  static Document parse_text(const std::string& text, const std::string& filename);
  /// Throws UsageError for a file that is missing, unreadable or above 4 MiB, SpecErrors for a syntax error.
  static Document load(const std::string& path);

  const std::string& filename() const { return filename_; }
  const Node& root() const { return root_; }
  Node& root() { return root_; }

  /// The place of the value of a key path; of the innermost part that is written, where the rest is left to defaults.
  Place place(const std::string& path) const;

 private:
  std::string filename_;
  Node root_;
};

/// The same value without its places; keys in the order they were written, of repeated keys the first.
nlohmann::ordered_json to_json(const Node& node);

/// Parses a JSON value whose every place is `at` (the value of an override). Throws SpecErrors.
Node parse_value(const std::string& text, const Place& at);

/// Whether the bytes are well-formed UTF-8.
bool is_utf8(const std::string& text);

}  // namespace headlab
