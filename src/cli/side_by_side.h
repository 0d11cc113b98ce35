#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "src/run/run.h"

namespace headlab {

/// Runs `headlab run ARGUMENTS --part i/jobs` for each i, in as many processes at once, and waits for all of them. What
/// they print goes where this process prints. A run whose claims do not hold has run all the same; throws Error where a
/// process ended before its runs were done: by a fault, which it told, or by Ctrl-C, which reaches them too.
void run_side_by_side(const std::vector<std::string>& arguments, int jobs);

/// The threads of each of `jobs` processes: `threads`, or where that is 0 an equal share of the cores, at least one.
int threads_of_each(int threads, int jobs);

/// The flag --jobs.
void add_jobs(CLI::App& command, int& jobs);

/// Does the `runs` runs of a spec in at most `jobs` processes; `flags` are then those that find the results. With one
/// job it does nothing. Threads are a part of what a run is: they follow from `jobs` alone, not from how many runs a
/// spec has.
void side_by_side(const std::string& spec, std::size_t runs, int jobs, const std::vector<std::string>& set, bool quiet,
                  RunFlags& flags);

}  // namespace headlab
