#include "src/run/run.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "modules/base/folder_lock.h"
#include "modules/base/nearest.h"
#include "modules/base/random.h"
#include "modules/base/version.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/json_file.h"
#include "src/report/report.h"
#include "src/run/stage.h"
#include "src/spec/dump.h"
#include "src/spec/expect.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

std::string short_hash(const std::string& text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(text_hash(text)));
  return std::string(digits, 10);
}

torch::Device device_from(const std::string& name) {
  try {
    const torch::Device device(name);
    if (device.is_cuda() && !torch::cuda::is_available())
      throw UsageError("device: " + in_quotes(name) +
                       " is not available: this LibTorch or machine has no CUDA; use cpu");
    return device;
  } catch (const c10::Error&) {
    throw UsageError("device: expected cpu, cuda or cuda:N, got " + in_quotes(name));
  }
}

std::map<std::string, std::string> saved_files(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".model") files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

std::string head_counts(const Model& model) {
  std::string text;
  for (const auto& [stack, layers] : model.heads()) {
    text += (text.empty() ? "" : ", ") + stack_name(stack) + " ";
    const auto as_first = [&](const auto& one) { return one.size() == layers.front().size(); };
    if (!layers.empty() && std::all_of(layers.begin(), layers.end(), as_first)) {
      text += std::to_string(layers.size()) + " x " + std::to_string(layers.front().size());
      continue;
    }
    for (std::size_t i = 0; i < layers.size(); ++i) text += (i ? "+" : "") + std::to_string(layers[i].size());
  }
  return text;
}

}  // namespace

std::vector<nlohmann::json> metric_rows(const std::filesystem::path& folder) {
  const auto file = folder / "metrics.jsonl";
  std::vector<nlohmann::json> rows;
  if (!std::filesystem::exists(file)) return rows;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) rows.push_back(parse_json(line, file.string() + ":" + std::to_string(rows.size() + 1)));
  return rows;
}

std::filesystem::path folder_of_run(const RunSpec& spec, const RunFlags& flags) {
  if (flags.threads > 0) at::set_num_threads(flags.threads);
  auto bits = dump(spec);  // what is asked and claimed changes no bits
  for (const char* key : {"question", "paper", "expect", "compare"}) bits.erase(key);
  return flags.out / spec.name /
         short_hash(bits.dump() + environment_of(device_from(flags.device.value_or(spec.device))).dump());
}

nlohmann::ordered_json environment_of(torch::Device device) {
  return {{"headlab", version},
          {"libtorch", TORCH_VERSION},
          {"device", device.str()},
          {"threads", at::get_num_threads()},
          {"cpu_capability", at::get_cpu_capability()}};
}

void run_stages(const Choices& list, RunContext& context) {
  for (const auto& stage : list.items) {
    const auto name = context.full(stage_name(stage));
    if (context.results()["stages"].contains(name)) {
      if (std::filesystem::exists(context.folder().checkpoints(name) / "final")) context.use_model(name);
      context.console().line(stage.type(), stage_name(stage) + "  done before");
      continue;
    }
    const auto before = std::chrono::steady_clock::now();
    nlohmann::ordered_json result{{"type", stage.type()}};
    result.update(stages().make(stage)->run(context));
    result["wall_seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    context.results()["stages"][name] = std::move(result);
    context.results()["metrics_bytes"] = context.metrics_bytes();
    context.save_results();
  }
}

nlohmann::ordered_json claim_view(const nlohmann::ordered_json& results) {
  auto view = nlohmann::ordered_json::object();
  for (const char* key : {"data", "model"})
    if (results.contains(key)) view[key] = results.at(key);
  for (const auto& [name, stage] : results.at("stages").items()) {
    view[name] = stage;
    if (stage.contains("metrics")) view[name].update(stage.at("metrics"));
    if (!stage.contains("runs")) continue;
    auto runs = nlohmann::ordered_json::array();
    for (const auto& run : stage.at("runs")) {
      auto merged = nlohmann::ordered_json::object();
      for (const auto& [inner_name, inner] : run.items()) {
        merged[inner_name] = inner;
        if (inner.contains("metrics")) merged.update(inner.at("metrics"));
      }
      runs.push_back(merged);
    }
    view[name] = runs;
  }
  return view;
}

void write_report(const std::filesystem::path& folder) {
  const auto json = [&](const char* name) { return read_ordered_json_file(folder / name); };
  write_file_atomically(folder / "report.html", report_html(json("results.json"), metric_rows(folder),
                                                            json("spec.json"), json("environment.json")));
}

RunOutcome run_variant(const RunVariant& variant, const std::string& spec_path, const RunFlags& flags, Console& console,
                       const std::atomic<bool>& stop) {
  const auto& spec = *variant.spec;
  const auto before = std::chrono::steady_clock::now();
  RunFolder folder{folder_of_run(spec, flags)};
  const auto device = device_from(flags.device.value_or(spec.device));
  const auto environment = environment_of(device);
  const auto resolved = dump(spec);
  make_folders(folder.path);
  const FolderLock lock(folder.path);
  if (flags.fresh) lock.clear();
  write_file_atomically(folder.path / "spec.json", resolved.dump(2) + "\n");
  write_file_atomically(folder.path / "environment.json", environment.dump(2) + "\n");
  console.log_to((folder.path / "log.txt").string());
  console.plain(spec.name + (variant.label.empty() ? "" : " (" + variant.label + ")") +
                (spec.question.empty() ? "" : ": " + spec.question) + "     " + device.str() + ", " +
                std::to_string(at::get_num_threads()) + " threads, seed " + std::to_string(spec.seed));

  TaskContext task_context;
  task_context.spec_folder = std::filesystem::path(spec_path).parent_path().string();
  task_context.seed = static_cast<uint64_t>(spec.seed);
  task_context.files = saved_files(folder.path);
  std::shared_ptr<Task> task = make_task(spec.task, task_context);
  for (const auto& [name, bytes] : task->files()) write_file_atomically(folder.path / name, bytes);
  console.line("data", task->summary());
  std::map<std::string, std::shared_ptr<Task>> further;
  auto longest = task->longest();
  for (std::size_t i = 0; i < spec.tasks.size(); ++i) {
    auto shared = task_context;
    shared.files = task->files();  // one vocabulary for all
    const auto& named = spec.tasks[i];
    const auto one = make_task(named.task, shared);
    const auto size = [](const ModelContext& c) {
      return std::to_string(c.source_vocabulary) + ", " + std::to_string(c.target_vocabulary) + " tokens and " +
             std::to_string(c.classes) + " classes";
    };
    if (size(one->context()) != size(task->context()))
      throw UsageError("tasks[" + std::to_string(i) + "]: expected the vocabularies of the spec's task (" +
                       size(task->context()) + "), got " + size(one->context()));
    console.line("data", named.name + ": " + one->summary());
    longest = std::max(longest, one->longest());
    further[named.name] = one;
  }

  RunContext context(spec, task, folder, console, device, [&stop] { return stop.load(); }, further);
  nlohmann::ordered_json whole_model;
  {
    const auto model = context.model("initial");
    whole_model = {{"parameters", model->parameter_count()}, {"heads", heads_of(model->heads()).size()}};
    if (longest > model->max_length())
      throw UsageError("model.embedding.max_length: expected at least " + std::to_string(longest) +
                       ", the longest text of the data in tokens, got " + std::to_string(model->max_length()));
    console.line("model", spec.model.type() + ", heads " + head_counts(*model) + ", " +
                              short_number(static_cast<double>(model->parameter_count())) + " parameters");
  }
  auto& results = context.results();
  results["name"] = spec.name;
  results["question"] = spec.question;
  results["label"] = variant.label;
  results["arm"] = variant.arm;
  results["group"] = variant.group;
  results["id"] = folder.path.filename().string();
  results["command"] = flags.command;
  results["seed"] = spec.seed;
  results["data"] = task->report();
  for (const auto& [name, one] : further) results["tasks"][name] = one->report();
  results["model"] = std::move(whole_model);
  // Data may lie beside the spec: whoever opens the run again looks there too.
  results["spec_folder"] = std::filesystem::absolute(spec_path).parent_path().lexically_normal().string();
  // A run that is looked at again takes no more time than it took.
  const bool ended_before = results.contains("seconds");
  double earlier = results.value("seconds", 0.0);
  for (const auto& [name, stage] : results["stages"].items())
    if (!ended_before) earlier += stage.value("wall_seconds", 0.0);
  const auto there = results["stages"].size();
  run_stages(spec.stages, context);
  if (!ended_before || results["stages"].size() != there)
    results["seconds"] = earlier + std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();

  RunOutcome outcome;
  std::vector<Verdict> verdicts;
  const auto view = claim_view(results);
  results["expect"] = nlohmann::ordered_json::array();
  std::optional<Error> unjudged;  // a claim that speaks of what is not there is told when everything else is safe
  for (const auto& expectation : spec.expect) {
    try {
      verdicts.push_back(judge(expectation, view));
    } catch (const Error& error) {
      if (!unjudged) unjudged = Error("expect, " + in_quotes(expectation.claim) + ": " + error.what(), error.exit_code);
      continue;
    }
    results["expect"].push_back(to_json(verdicts.back()));
    outcome.expectations_hold = outcome.expectations_hold && verdicts.back().holds;
  }
  if (!verdicts.empty()) {
    std::istringstream lines(verdict_text(verdicts));
    for (std::string line; std::getline(lines, line);) console.line("expect", line);
  }
  context.save_results();
  if (!ended_before || results["stages"].size() != there)
    add_results(context.events(), results, resolved, seconds_since_1970());
  write_report(folder.path);
  const auto report =
      "report: " + (folder.path / "report.html").string() + "       (" + duration(results["seconds"]) + ")";
  console.plain(report);
  console.ended(spec.name + (variant.label.empty() ? "" : " (" + variant.label + ")") + "  " + report);
  if (unjudged) throw *unjudged;
  outcome.folder = folder.path;
  outcome.results = results;
  return outcome;
}

}  // namespace headlab
