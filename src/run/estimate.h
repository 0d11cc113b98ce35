#pragma once

#include "src/run/run.h"

namespace headlab {

/// How long runs take, judged by what earlier ones left in their folders.
struct Estimate {
  std::size_t runs = 0;       // in all
  std::size_t done = 0;       // of them: nothing of them is run again
  double used = 0;            // seconds that those took
  std::size_t unknown = 0;    // of those to do: no run of the same name has ended yet
  double left = 0;            // seconds until the others are done, with `jobs` at once
  std::size_t judged_by = 0;  // runs that ended before

  Estimate& operator+=(const Estimate& other);
  std::size_t to_do() const { return runs - done; }
};

/// Of the runs of one spec. A run that is not done is taken to last as the mean of those of its group that ended, or of
/// any of the same name; what it has done already (stages that ended) is taken off. `jobs` processes have the runs
/// dealt out as
/// `--jobs` does.
Estimate estimate(const std::vector<RunVariant>& variants, const RunFlags& flags, int jobs);

/// "12 of 33 runs done before (6 min 2 s); 21 to do: about 14 min 30 s, judged by 12 earlier runs", or for what is not
/// known "unknown until the first run has ended".
std::string estimate_text(const Estimate& estimate);

/// While it goes on: "20 of 33 runs done, about 10 min 3 s left".
std::string left_text(const Estimate& estimate);

}  // namespace headlab
