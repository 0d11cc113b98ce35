#pragma once
// Wrong specs as a table: {spec text, --set arguments, the whole message}. Used with any options struct.

#include <string>
#include <vector>

#include "src/spec/override.h"
#include "src/spec/reader.h"

namespace headlab {

struct WrongSpec {
  std::string text;
  std::vector<std::string> overrides;
  std::string message;  // every line; the closing line of one mistake is added where none is given
};

/// The message with which a spec named x.json is refused; "accepted" where it is not.
template <class Spec>
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    Document document = Document::parse_text(text, "x.json");
    std::vector<Mistake> mistakes = apply_overrides(document, overrides);
    Spec spec;
    for (Mistake& mistake : read(document, spec)) mistakes.push_back(mistake);
    throw_mistakes(mistakes);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

inline std::string whole_message(const WrongSpec& row) {
  bool closed = row.message.find("nothing was run") != std::string::npos;
  return closed ? row.message : row.message + "\n1 mistake, nothing was run";
}

}  // namespace headlab
