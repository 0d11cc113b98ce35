#pragma once

#include <filesystem>

#include "src/run/context.h"

namespace headlab {

/// A run folder opened to use its models.
struct SavedRun {
  std::shared_ptr<RunSpec> spec;
  std::shared_ptr<Task> task;
  nlohmann::ordered_json results;
  std::filesystem::path folder;
  std::string stage;  // whose model was loaded
  std::shared_ptr<Model> model;
};

/// The run folders that a path stands for: itself, or those within it, by name; none where there are none.
std::vector<std::filesystem::path> run_folders(const std::filesystem::path& given);

/// The folder of a run: the one given, or the only one within it (runs/quickstart). Throws FileError where there is
/// none, UsageError where there are several.
std::filesystem::path run_folder(const std::filesystem::path& given);

/// Loads the model of a stage ("" : the last stage that left one, "initial": unset weights) from a run folder (as
/// run_folder finds it). Throws FileError for a folder that is no run, UsageError for a stage without a model (with
/// those that have one). The data that it learned from is looked for only `with_data`, to measure the model again.
SavedRun open_run(const std::filesystem::path& folder, const std::string& stage, const std::string& device,
                  bool with_data = false);

/// The spec of a run folder or a spec file, and a model with these sizes: for `headlab show`.
SavedRun open_spec(const std::filesystem::path& spec_file);

}  // namespace headlab
