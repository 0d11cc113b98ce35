#include <cstdio>
#include <filesystem>

#include "src/cli/command.h"
#include "src/cli/side_by_side.h"
#include "src/cli/stop.h"
#include "src/run/experiment.h"
#include "src/run/saved_model.h"

namespace headlab {
namespace {

struct Arguments {
  std::string spec, out = "runs", device, part;
  std::vector<std::string> set;
  int threads = 0, jobs = 1;
  bool quiet = false, brief = false, fresh = false, json = false;
};

}  // namespace

std::function<int()> add_run(CLI::App& command) {
  auto arguments = std::make_shared<Arguments>();
  auto& a = *arguments;
  command.add_option("spec", a.spec, "a JSON spec, such as experiments/quickstart.json")->required();
  command.add_option("--set", a.set, "set a key: --set model.d_model=256; may be repeated")->take_all();
  command.add_option("--out", a.out, "where run folders go")->capture_default_str();
  command.add_option("--device", a.device, "cpu, cuda or cuda:N; wins over the spec");
  command.add_option("--threads", a.threads, "CPU threads; results depend on their number");
  command.add_option("--part", a.part, "of a sweep, the runs of part i of n: --part 1/4");
  add_jobs(command, a.jobs);
  command.add_flag("--quiet", a.quiet, "print nothing but errors");
  command.add_flag("--brief", a.brief, "print a line for each run when it ends");
  command.add_flag("--json", a.json, "print the results as JSON on standard output, and nothing else");
  command.add_flag("--fresh", a.fresh, "start again even where an earlier run of the same spec could be gone on with");
  return [arguments] {
    const auto& a = *arguments;
    const auto variants = load_spec(a.spec, a.set);
    std::optional<Part> part;
    if (!a.part.empty()) part = parse_part(a.part);
    if (part && a.jobs > 1)
      throw UsageError("run: --part and --jobs: expected one of them; --jobs runs all parts itself");
    RunFlags flags;
    flags.out = a.out;
    if (!a.device.empty()) flags.device = a.device;
    flags.threads = a.threads;
    flags.fresh = a.fresh;
    flags.command = "tools/headlab run " + a.spec;
    for (const auto& set : a.set) flags.command += " --set '" + set + "'";
    const auto& stop_asked = stop_on_signals();
    const bool quiet = a.quiet || a.json;
    side_by_side(a.spec, variants.size(), a.jobs, a.set, quiet, flags);
    const auto kind = quiet ? Console::Kind::quiet : a.brief ? Console::Kind::brief : Console::Kind::normal;
    const auto outcome = run_experiment(variants, a.spec, flags, kind, part, stop_asked);
    auto all = nlohmann::ordered_json::array();
    for (const auto& run : outcome.runs) {
      all.push_back(run.results);
      all.back()["folder"] = run.folder.string();
    }
    if (a.json) std::printf("%s\n", (all.size() == 1 ? all[0] : all).dump(2).c_str());
    return outcome.holds ? 0 : 3;
  };
}

std::function<int()> add_check(CLI::App& command) {
  struct Checked {
    std::vector<std::string> specs, set;
  };
  auto arguments = std::make_shared<Checked>();
  command.add_option("specs", arguments->specs, "JSON specs")->required();
  command.add_option("--set", arguments->set, "set a key before checking")->take_all();
  return [arguments] {
    int code = 0;
    for (const auto& path : arguments->specs) {
      try {
        const auto variants = load_spec(path, arguments->set);
        std::printf("%s: fine, %zu run%s\n", path.c_str(), variants.size(), variants.size() == 1 ? "" : "s");
      } catch (const UsageError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        code = 2;
      }
    }
    return code;
  };
}

std::function<int()> add_report(CLI::App& command) {
  struct Wanted {
    std::vector<std::string> runs;
    std::string out = "comparison.html";
  };
  auto wanted = std::make_shared<Wanted>();
  command
      .add_option("runs", wanted->runs,
                  "a run folder, such as runs/quickstart/8f3a2c0d11, or that of all runs of a spec: runs/quickstart; "
                  "several: compared on one page")
      ->required();
  const auto* out =
      command.add_option("--out", wanted->out, "the page of a comparison; its table stands beside it as .csv")
          ->capture_default_str();
  return [wanted, out] {
    const auto& runs = wanted->runs;
    auto page = std::filesystem::path(runs.front()) / "report.html";
    if (runs.size() > 1 || out->count() > 0) {
      std::string command = "tools/headlab report";
      for (const auto& run : runs) command += " " + run;
      write_comparison({runs.begin(), runs.end()}, page = wanted->out, command);
    } else if (std::filesystem::exists(std::filesystem::path(runs.front()) / "experiment.json")) {
      write_experiment_report(runs.front());
    } else {
      const auto run = run_folder(runs.front());
      write_report(run);
      page = run / "report.html";
    }
    std::printf("%s\n", page.c_str());
    return 0;
  };
}

}  // namespace headlab
