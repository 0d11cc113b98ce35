#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace headlab {

/// One command of the program: adds its arguments, and returns what runs it (its result is the exit code).
struct Command {
  const char* name;
  const char* summary;
  std::function<int()> (*add)(CLI::App& command);
  const char* examples;  // of command lines, as help shows them
};

/// In the order of `headlab --help`.
const std::vector<Command>& commands();

/// A model of a run that is used: its flags for translate, transcribe, generate and score. `does`: "translates".
struct ChosenModel {
  std::string run, stage, device;
  void add_flags(CLI::App& command, const std::string& does);
};

std::function<int()> add_run(CLI::App& command);
std::function<int()> add_reproduce(CLI::App& command);
std::function<int()> add_check(CLI::App& command);
std::function<int()> add_list(CLI::App& command);
std::function<int()> add_schema(CLI::App& command);
std::function<int()> add_show(CLI::App& command);
std::function<int()> add_unroll(CLI::App& command);
std::function<int()> add_report(CLI::App& command);
std::function<int()> add_translate(CLI::App& command);
std::function<int()> add_transcribe(CLI::App& command);
std::function<int()> add_generate(CLI::App& command);
std::function<int()> add_score(CLI::App& command);
std::function<int()> add_data(CLI::App& command);
std::function<int()> add_new(CLI::App& command);
std::function<int()> add_completion(CLI::App& command);
std::function<int()> add_bench(CLI::App& command);

}  // namespace headlab
