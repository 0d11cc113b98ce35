#include <sys/wait.h>

#include <algorithm>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

/// What bash offers after these words, the last of which is being typed.
std::vector<std::string> offered(const std::vector<std::string>& words, const std::filesystem::path& folder) {
  const auto printed = run_program({"completion", "bash"});
  REQUIRE(printed.code == 0);
  headlab::write_file_atomically(folder / "completion.bash", printed.out);
  std::string line;
  for (const auto& word : words) line += " '" + word + "'";
  Running bash({"/bin/bash", "-c",
                "cd '" + folder.string() + "' && source completion.bash && COMP_WORDS=(headlab" + line +
                    ") COMP_CWORD=" + std::to_string(words.size()) +
                    " && _headlab && printf '%s\\n' \"${COMPREPLY[@]}\""});
  const auto done = bash.wait();
  CHECK(done.err == "");
  std::istringstream lines(done.out);
  std::vector<std::string> all;
  for (std::string one; std::getline(lines, one);)
    if (!one.empty()) all.push_back(one);
  return all;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

TEST_CASE("bash completes commands, flags, values, entries of slots, and files", "[cli]") {
  const Folder folder;
  folder.write("mine.json", "{}");
  CHECK(offered({"rep"}, folder.path()) == std::vector<std::string>{"reproduce", "report"});
  CHECK(offered({"run", "--th"}, folder.path()) == std::vector<std::string>{"--threads"});
  CHECK(offered({"run", "mi"}, folder.path()) == std::vector<std::string>{"mine.json"});
  CHECK(offered({"list", "gate.hard"}, folder.path()) == std::vector<std::string>{"gate.hard_concrete"});
  CHECK(offered({"completion", ""}, folder.path()) == std::vector<std::string>{"bash", "zsh", "fish"});
  CHECK(has(offered({"data", ""}, folder.path()), "grammar"));
  CHECK(offered({"data", "grammar", "--tr"}, folder.path()) == std::vector<std::string>{"--train"});
  CHECK(offered({"bench", "attention", "ro"}, folder.path()) == std::vector<std::string>{"routing"});
}

TEST_CASE("zsh and fish read their completions without complaint, where they are installed", "[cli]") {
  const Folder folder;
  for (const std::string shell : {"zsh", "fish"}) {
    const auto printed = run_program({"completion", shell});
    REQUIRE(printed.code == 0);
    CHECK_THAT(printed.out, ContainsSubstring("reproduce"));
    CHECK_THAT(printed.out, ContainsSubstring("gate.hard_concrete"));
    const auto file = folder.write("completion." + shell, printed.out);
    Running found({"/bin/sh", "-c", "command -v " + shell});
    if (found.wait().code != 0) continue;
    Running checked({"/bin/sh", "-c", shell + " -n '" + file.string() + "'"});
    const auto done = checked.wait();
    INFO(shell << ": " << done.err);
    CHECK(done.code == 0);
  }
  CHECK(run_program({"completion", "tcsh"}).code == 2);
}

TEST_CASE("the help of each command has examples, which begin with the command", "[cli]") {
  const auto help = run_program({"--help"});
  REQUIRE(help.code == 0);
  CHECK_THAT(help.out, ContainsSubstring("Usage: headlab [OPTIONS] SUBCOMMAND"));
  std::istringstream lines(help.out.substr(help.out.find("Subcommands:")));
  std::string line;
  std::getline(lines, line);
  int commands = 0;
  for (std::string name; std::getline(lines, line) && std::istringstream(line) >> name; ++commands) {
    INFO(name);
    const auto of_command = run_program({name, "--help"});
    CHECK_THAT(of_command.out, ContainsSubstring("Examples:"));
    CHECK_THAT(of_command.out, ContainsSubstring("headlab " + name));
  }
  CHECK(commands >= 13);
}
