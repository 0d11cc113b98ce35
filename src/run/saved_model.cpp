#include "src/run/saved_model.h"

#include <algorithm>
#include <atomic>

#include "modules/base/nearest.h"
#include "src/checkpoint/json_file.h"
#include "src/run/run.h"
#include "src/run/stage.h"
#include "src/spec/reader.h"

namespace headlab {
namespace {

/// `files`: the run folder with the task's files; empty: they are made anew.
std::shared_ptr<Task> task_of(const RunSpec& spec, const std::filesystem::path& spec_folder,
                              const std::filesystem::path& files, bool with_data) {
  TaskContext context;
  context.reads_data = with_data;
  context.spec_folder = spec_folder.string();
  context.seed = static_cast<uint64_t>(spec.seed);
  if (!files.empty())
    for (const auto& entry : std::filesystem::directory_iterator(files))
      if (entry.path().extension() == ".model")
        context.files[entry.path().filename().string()] = read_file(entry.path());
  return make_task(spec.task, context);
}

}  // namespace

std::vector<std::filesystem::path> run_folders(const std::filesystem::path& given) {
  const auto is_run = [](const std::filesystem::path& folder) {
    return std::filesystem::exists(folder / "spec.json") && std::filesystem::exists(folder / "results.json");
  };
  if (is_run(given)) return {given};
  std::vector<std::filesystem::path> inside;
  if (std::filesystem::is_directory(given))
    for (const auto& entry : std::filesystem::directory_iterator(given))
      if (is_run(entry.path())) inside.push_back(entry.path());
  std::sort(inside.begin(), inside.end());
  return inside;
}

std::filesystem::path run_folder(const std::filesystem::path& given) {
  const auto inside = run_folders(given);
  if (inside.size() == 1) return inside.front();
  if (inside.empty())
    throw FileError(
        given.string() +
        ": not a run folder (no spec.json and results.json in it); expected one such as runs/quickstart/8f3a2c0d11");
  std::string names;
  for (const auto& one : inside) names += (names.empty() ? "" : ", ") + one.filename().string();
  throw UsageError(given.string() + ": expected one run, got a folder of " + std::to_string(inside.size()) +
                   "; name one of them: " + names);
}

SavedRun open_run(const std::filesystem::path& given, const std::string& stage, const std::string& device,
                  bool with_data) {
  const auto folder = run_folder(given);
  SavedRun run;
  run.folder = folder;
  run.spec = std::make_shared<RunSpec>();
  read_or_throw(Document::load((folder / "spec.json").string()), *run.spec);
  run.results = read_ordered_json_file(folder / "results.json");
  if (!run.results.contains("stages") || !run.results["stages"].is_object())
    throw FileError((folder / "results.json").string() + ": expected the results of a run, got " + shown(run.results));
  // Data files are looked for where the run found them: beside its spec.
  run.task = task_of(*run.spec, run.results.value("spec_folder", folder.string()), folder, with_data);
  std::string last, exist;
  for (const auto& [name, result] : run.results["stages"].items())
    if (std::filesystem::exists(folder / "checkpoints" / name / "final")) {
      last = name;
      exist += (exist.empty() ? "" : ", ") + name;
    }
  run.stage = stage.empty() ? last : stage;
  if (run.stage.empty())
    throw UsageError(folder.string() +
                     ": no stage has left a model (checkpoints/<stage>/final); run its spec to the end");
  if (!std::filesystem::exists(folder / "checkpoints" / run.stage / "final"))
    throw UsageError(folder.string() + ": no stage " + in_quotes(run.stage) +
                     " with a model; those with one: " + (exist.empty() ? "none" : exist));
  Console quiet(Console::Kind::quiet);
  RunContext context(*run.spec, run.task, RunFolder{folder}, quiet,
                     torch::Device(device.empty() ? run.spec->device : device), {});
  run.model = context.model(run.stage);
  run.model->eval();
  return run;
}

SavedRun open_spec(const std::filesystem::path& spec_file) {
  SavedRun run;
  run.spec = load_spec(spec_file.string(), {}).front().spec;
  run.task = task_of(*run.spec, spec_file.parent_path(), {}, true);
  Console quiet(Console::Kind::quiet);
  RunContext context(*run.spec, run.task, RunFolder{}, quiet, torch::kCPU, {});
  run.stage = "initial";
  run.model = context.model("initial");
  return run;
}

}  // namespace headlab
