#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "modules/base/atomic_file.h"
#include "src/heads/head_set.h"
#include "src/report/event_file.h"
#include "src/run/console.h"
#include "src/run/spec.h"

namespace headlab {

/// The folder of one run: runs/<name>/<id>/.
struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path checkpoints(const std::string& stage) const { return path / "checkpoints" / stage; }
  std::filesystem::path heads(const std::string& stage) const { return path / "heads" / (stage + ".json"); }
  std::filesystem::path exports() const { return path / "exports"; }
};

/// What stages share: the spec, the task, models by the stage that made them, results, and where to print.
class RunContext {
 public:
  RunContext(const RunSpec& spec, std::shared_ptr<Task> task, RunFolder folder, Console& console, torch::Device device,
             std::function<bool()> stop, std::map<std::string, std::shared_ptr<Task>> further = {});

  const RunSpec& spec() const { return spec_; }
  /// One of the spec's further tasks by its name; empty: the spec's task.
  const Task& task(const std::string& name = "") const { return name.empty() ? *task_ : *further_.at(name); }
  const RunFolder& folder() const { return folder_; }
  Console& console() { return console_; }
  torch::Device device() const { return device_; }
  /// The seed of a stage's draws: of the run, the stage's name and the repetition.
  uint64_t seed_of(const std::string& stage) const;
  /// True once the user asked to stop; stages that can save do so and throw Interrupted.
  bool stop_asked() const { return stop_ && stop_(); }

  /// A copy, to be changed, of the model that a stage made ("initial": before any; empty: the latest).
  std::shared_ptr<Model> model(const std::string& stage);
  /// What that model is made of: the spec's model, or what a stage has made of it (convert).
  const Choice& model_options(const std::string& stage);
  /// Keeps the model that `stage` made, of these options, in memory and in checkpoints/<stage>/final.
  void keep_model(const std::string& stage, std::shared_ptr<Model> model, const Choice& options);
  /// A model of these options with these heads and unset weights.
  std::shared_ptr<Model> make_model(const Choice& options, const HeadTable& kept) const;
  /// The latest model is now that of `stage` (which was done in an earlier run).
  void use_model(const std::string& stage) { latest_ = stage; }
  const std::string& latest() const { return latest_; }

  /// Masks that a stage chose for its model: heads to be scaled by 0 in every later use of it.
  HeadSet masked(const std::string& stage) const;

  HeadScores scores(const std::string& stage) const;
  void keep_scores(const std::string& stage, const HeadScores& scores);

  /// Appends a row to metrics.jsonl. `metrics_bytes` before a stage, `metrics_from` to go on from there.
  void metric(const nlohmann::ordered_json& row);
  int64_t metrics_bytes();
  void metrics_from(int64_t bytes);
  /// The same rows for TensorBoard, with what the run came to: events.out.tfevents.headlab, made anew by whoever goes
  /// on.
  EventFile& events();

  /// results.json: {"stages": {...}, ...}; saved atomically after each stage.
  nlohmann::ordered_json& results() { return results_; }
  void save_results() const;

  /// In a repetition the names of stages and their files begin with this ("random-3/").
  std::string prefix;
  int64_t repetition = 0;
  std::string full(const std::string& stage) const { return stage == "initial" ? stage : prefix + stage; }
  /// The full name of a stage that is referred to: in the repetition, else outside; empty: the latest.
  std::string resolve(const std::string& stage) const;

 private:
  const RunSpec& spec_;
  std::shared_ptr<Task> task_;
  std::map<std::string, std::shared_ptr<Task>> further_;
  RunFolder folder_;
  Console& console_;
  torch::Device device_;
  std::function<bool()> stop_;
  struct Made {
    std::shared_ptr<Model> model;
    Choice options{model_catalogue, "encoder_decoder"};
  };
  Made& made(const std::string& name);  // by its full name, loaded where it is not in memory
  std::map<std::string, Made> models_;
  std::string latest_ = "initial";
  std::unique_ptr<LineFile> metrics_;
  std::unique_ptr<EventFile> events_;
  nlohmann::ordered_json results_;
};

/// The user stopped the run; everything is saved.
struct Interrupted : Error {
  using Error::Error;
};

}  // namespace headlab
