// What README.md and the other documents say of commands is true of the program: the commands are there, with the flags
// named.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

const std::string& help_of(const std::string& command) {
  static std::map<std::string, std::string> known;
  const auto found = known.find(command);
  if (found != known.end()) return found->second;
  std::vector<std::string> arguments;
  std::istringstream words(command);
  for (std::string word; words >> word;) arguments.push_back(word);
  arguments.push_back("--help");
  const auto done = run_program(arguments);
  return known[command] = done.code == 0 ? done.out : "";
}

}  // namespace

TEST_CASE("every command that the documents name is there, with every flag that stands beside it", "[cli][docs]") {
  std::size_t commands = 0, flags = 0;
  for (const std::string file :
       {"README.md", "CONTRIBUTING.md", "docs/tour.md", "data/README.md", "experiments/README.md"}) {
    const auto text = headlab::read_file(in_source(file));
    static const std::regex call("(?:tools/)?headlab ([a-z]+)((?: +[^ \\n`|]+)*)");
    for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
      const std::string command = (*at)[1], rest = (*at)[2], whole = (*at)[0];
      // In running text "headlab" begins sentences too: what is set as code, or called as a program, counts.
      const auto before = at->position() > 0 ? text[static_cast<std::size_t>(at->position()) - 1] : ' ';
      if (whole.rfind("tools/", 0) != 0 && before != '`') continue;
      INFO(file << ": " << whole);
      auto help = help_of(command);
      CHECK(help != "");
      ++commands;
      std::istringstream words(rest);
      std::string second;
      words >> second;
      if ((command == "data" || command == "bench") && !second.empty() &&
          std::isalpha(static_cast<unsigned char>(second[0]))) {
        help = help_of(command + " " + second);
        CHECK(help != "");
      }
      static const std::regex flag("--([a-z][a-z-]+)");
      for (std::sregex_iterator named(rest.begin(), rest.end(), flag); named != std::sregex_iterator(); ++named) {
        CHECK_THAT(help, ContainsSubstring("--" + (*named)[1].str()));
        ++flags;
      }
    }
  }
  CHECK(commands > 40);
  CHECK(flags > 15);
}

TEST_CASE("every piece of a spec that the README shows is JSON", "[docs]") {
  const auto text = headlab::read_file(in_source("README.md"));
  std::istringstream lines(text);
  std::string piece;
  int pieces = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool code = line.rfind("    ", 0) == 0;
    if (code && (!piece.empty() || line.find_first_not_of(' ') == line.find('"'))) piece += line + "\n";
    if (code || piece.empty()) continue;
    INFO(piece);
    CHECK_NOTHROW(nlohmann::json::parse("{" + piece + "}"));
    ++pieces;
    piece.clear();
  }
  if (!piece.empty()) {
    INFO(piece);
    CHECK_NOTHROW(nlohmann::json::parse("{" + piece + "}"));
    ++pieces;
  }
  CHECK(pieces >= 1);
}
