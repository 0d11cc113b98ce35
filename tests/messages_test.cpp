// What the program says when something is wrong: every message of the sources stands in tests/messages.txt, as a person
// reads it, so that a change of wording is read as text. HEADLAB_WRITE_MESSAGES=1 writes the file anew.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/places.h"

using namespace headlab;
namespace fs = std::filesystem;

namespace {

/// The end of the string literal that begins at `at` (a quote); plain literals alone stand in messages.
std::size_t end_of_literal(const std::string& text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at;
}

/// The arguments of the call whose opening bracket is at `at`, each as written.
std::vector<std::string> arguments_at(const std::string& text, std::size_t at) {
  std::vector<std::string> all(1);
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '"') {
      const auto end = end_of_literal(text, at);
      all.back() += text.substr(at, end - at + 1);
      at = end;
      continue;
    }
    if (letter == '\'' && at + 2 < text.size()) {  // a letter, which may be a bracket or a quote
      const auto end = text[at + 1] == '\\' ? at + 3 : at + 2;
      all.back() += text.substr(at, end - at + 1);
      at = end;
      continue;
    }
    if (letter == '(' || letter == '{' || letter == '[') ++depth;
    if (letter == ')' || letter == '}' || letter == ']') --depth;
    if (depth == 0) return all;
    if (letter == ',' && depth == 1)
      all.emplace_back();
    else if (depth > 1 || letter != '(')
      all.back() += letter;
  }
  return all;
}

/// An expression that makes a text, as it reads: its literals, and … for what is put in.
std::string as_read(const std::string& expression) {
  std::string read;
  bool filled = false;
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const char letter = expression[at];
    if (letter == '"') {
      const auto end = end_of_literal(expression, at);
      for (auto i = at + 1; i < end; ++i) {
        if (expression[i] != '\\')
          read += expression[i];
        else
          read += expression[++i] == 'n' ? ' ' : expression[i];
      }
      at = end;
      filled = false;
    } else if (!std::isspace(static_cast<unsigned char>(letter)) && letter != '+' && letter != '(' && letter != ')') {
      if (!filled) read += "…";
      filled = true;
    }
  }
  return read;
}

/// "file: message" for every message of a source.
std::vector<std::string> messages_in(const fs::path& file, const std::string& name) {
  const auto text = read_file(file);
  std::vector<std::string> found;
  for (const std::string call : {"UsageError(", "FileError(", "ShapeError(", "wrong_shape(", "Interrupted(",
                                 "problems.add(", "around.problem(", "around.beside("})
    for (auto at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
      if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_')) continue;
      const auto arguments = arguments_at(text, at + call.size() - 1);
      std::string message;
      if (call == "wrong_shape(" && arguments.size() > 1)
        message = as_read(arguments[0]) + ": expected " + as_read(arguments[1]) + ", got …";
      else if ((call == "problems.add(" || call.rfind("around.", 0) == 0) && arguments.size() > 1)
        message = as_read(arguments[1]);
      else
        message = as_read(arguments[0]);
      if (std::count_if(message.begin(), message.end(), [](unsigned char c) { return std::isalpha(c); }) > 3)
        found.push_back(name + ": " + message);
    }
  return found;
}

std::string all_messages() {
  std::vector<std::string> all;
  for (const std::string top : {"modules", "src"})
    for (const auto& entry : fs::recursive_directory_iterator(test::in_source(top)))
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h") {
        const auto name = fs::relative(entry.path(), test::in_source(".")).string();
        for (auto& message : messages_in(entry.path(), name)) all.push_back(std::move(message));
      }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::string text;
  for (const auto& line : all) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("every message of the program stands in the list that is read as text") {
  const auto file = test::in_source("tests/messages.txt");
  const auto now = all_messages();
  if (std::getenv("HEADLAB_WRITE_MESSAGES")) write_file_atomically(file, now);
  const auto listed = read_file(file);
  std::istringstream lines(now);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    INFO("new or changed: read it, then write the list anew with HEADLAB_WRITE_MESSAGES=1");
    if (listed.find(line + "\n") == std::string::npos) CHECK(line == "");
  }
  std::istringstream known(listed);
  for (std::string line; std::getline(known, line);) {
    INFO("no longer said");
    if (now.find(line + "\n") == std::string::npos) CHECK(line == "");
  }
  CHECK(count > 250);
  // A message says what was expected, or what can be done; a place alone is none.
  std::istringstream again(now);
  for (std::string line; std::getline(again, line);) {
    CHECK(line.find("  ") == std::string::npos);
    CHECK(line.find("please") == std::string::npos);
    CHECK(line.back() != '!');
  }
}
