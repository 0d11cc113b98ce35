#pragma once

#include <atomic>
#include <filesystem>
#include <optional>

#include "src/run/console.h"
#include "src/run/context.h"
#include "src/run/spec.h"

namespace headlab {

/// How to run, as flags say it; what to run is in the spec.
struct RunFlags {
  std::filesystem::path out = "runs";
  std::optional<std::string> device;  // wins over the spec's
  int threads = 0;                    // 0: as many as LibTorch takes
  bool fresh = false;                 // do not go on from an earlier run of the same spec
  std::string command;                // what repeats the run, for the report
  std::string go_on;                  // what goes on after a stop; empty: command
};

struct RunOutcome {
  std::filesystem::path folder;
  nlohmann::ordered_json results;
  bool expectations_hold = true;
};

/// The folder of a run. Sets the number of threads, which is a part of what a run is. Throws UsageError for a device
/// that is not there.
std::filesystem::path folder_of_run(const RunSpec& spec, const RunFlags& flags);

/// Runs one variant of a spec: makes the run folder, goes on from what is there, runs each stage that has no result,
/// judges the expectations, writes the report. `stop`: set to leave soon with everything saved (throws Interrupted).
RunOutcome run_variant(const RunVariant& variant, const std::string& spec_path, const RunFlags& flags, Console& console,
                       const std::atomic<bool>& stop);

/// The rows of a run folder's metrics.jsonl; none where it is not there. Throws FileError where it is damaged.
std::vector<nlohmann::json> metric_rows(const std::filesystem::path& folder);

/// Writes report.html of a run folder from its files. Throws FileError where it is none.
void write_report(const std::filesystem::path& folder);

/// Names and values that claims can use: metrics of evaluate stages by the stage's name ("full.bleu"), lists over
/// repetitions ("random.bleu"), all of every stage ("prune.heads_after"), what the data report says
/// ("data.train.pairs"), and "model.parameters" and "model.heads" of the whole model.
nlohmann::ordered_json claim_view(const nlohmann::ordered_json& results);

/// What the bits of a run depend on beside its spec: versions, device, precision, threads, CPU capability.
nlohmann::ordered_json environment_of(torch::Device device);

}  // namespace headlab
