#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "src/cli/command.h"
#include "src/cli/side_by_side.h"
#include "src/run/experiment.h"
#include "src/terminal/format.h"
#include "src/terminal/table.h"

namespace headlab {
namespace {

std::atomic<bool> stop_asked{false};

void ask_to_stop(int signal) {
  if (stop_asked.exchange(true)) std::_Exit(128 + signal);  // the second time: at once
}

struct Arguments {
  std::string spec, out = "runs", device, part;
  std::vector<std::string> set;
  int threads = 0, jobs = 1;
  bool quiet = false, brief = false, fresh = false, json = false;
};

void add_jobs(CLI::App& command, int& jobs) {
  command.add_option("--jobs", jobs, "runs of a sweep or of arms and seeds side by side, in as many processes that share the cores")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
}

// Does a spec's runs in at most `jobs` processes; `flags` are then those that find the results. Threads are a part of what a
// run is: they follow from `jobs` alone, not from how many runs a spec has.
void side_by_side(const std::string& spec, std::size_t runs, int jobs, const std::vector<std::string>& set, bool quiet, RunFlags& flags) {
  if (jobs == 1) return;
  flags.threads = threads_of_each(flags.threads, jobs);
  const int processes = std::min<int>(jobs, static_cast<int>(runs));
  if (processes == 1) return;
  std::vector<std::string> arguments{spec, "--out", flags.out.string(), "--threads", std::to_string(flags.threads), quiet ? "--quiet" : "--brief"};
  if (flags.device) arguments.insert(arguments.end(), {"--device", *flags.device});
  for (const auto& one : set) arguments.insert(arguments.end(), {"--set", one});
  if (flags.fresh) arguments.push_back("--fresh");
  run_side_by_side(arguments, processes);
  flags.fresh = false;  // they began again; now their results are put together
}

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
    if (part && a.jobs > 1) throw UsageError("run: --part and --jobs: expected one of them; --jobs runs all parts itself");
    RunFlags flags;
    flags.out = a.out;
    if (!a.device.empty()) flags.device = a.device;
    flags.threads = a.threads;
    flags.fresh = a.fresh;
    flags.command = "tools/headlab run " + a.spec;
    for (const auto& set : a.set) flags.command += " --set '" + set + "'";
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
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

std::function<int()> add_reproduce(CLI::App& command) {
  struct Wanted {
    std::vector<std::string> paths;
    std::string out = "runs", device, table, section = "claims";
    int threads = 0, jobs = 1;
    bool quiet = false;
  };
  auto wanted = std::make_shared<Wanted>();
  command.add_option("paths", wanted->paths, "specs, or folders of specs, such as experiments/components")->required();
  command.add_option("--out", wanted->out, "where run folders go")->capture_default_str();
  command.add_option("--device", wanted->device, "cpu, cuda or cuda:N; wins over the specs");
  command.add_option("--threads", wanted->threads, "CPU threads; results depend on their number");
  add_jobs(command, wanted->jobs);
  command.add_option("--table", wanted->table, "write the table into this Markdown file, between <!-- begin claims --> and <!-- end claims -->");
  command.add_option("--section", wanted->section, "the name of that section")->capture_default_str();
  command.add_flag("--quiet", wanted->quiet, "print the table alone");
  return [wanted] {
    const auto& w = *wanted;
    std::vector<std::string> specs;
    for (const auto& path : w.paths) {
      if (!std::filesystem::is_directory(path)) {
        specs.push_back(path);
        continue;
      }
      std::vector<std::string> inside;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.path().extension() == ".json") inside.push_back(entry.path().string());
      std::sort(inside.begin(), inside.end());
      specs.insert(specs.end(), inside.begin(), inside.end());
    }
    if (specs.empty()) throw UsageError("reproduce: no specs (.json) in " + w.paths.front());
    std::vector<std::vector<RunVariant>> read;
    for (const auto& spec : specs) read.push_back(load_spec(spec, {}));  // all mistakes before anything runs
    std::string file;
    if (!w.table.empty()) file = replaced_section(read_file(w.table), w.section, "");  // a missing section too
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
    std::vector<ClaimRow> rows;
    bool hold = true;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      RunFlags flags;
      flags.out = w.out;
      if (!w.device.empty()) flags.device = w.device;
      flags.threads = w.threads;
      flags.command = "tools/headlab run " + specs[i];
      side_by_side(specs[i], read[i].size(), w.jobs, {}, w.quiet, flags);
      const auto outcome = run_experiment(read[i], specs[i], flags, w.quiet ? Console::Kind::quiet : Console::Kind::normal, std::nullopt, stop_asked);
      hold = hold && outcome.holds;
      for (auto& row : claim_rows(specs[i], *read[i].front().spec, outcome)) rows.push_back(std::move(row));
    }
    Table table{{"spec", "statement", "expected", "measured", "verdict"}, {}};
    for (const auto& row : rows)
      table.rows.push_back({std::filesystem::path(row.spec).stem().string(), row.claim, row.expected, row.measured, row.answer});
    std::printf("%s", table.text(200, 0).c_str());
    if (!w.table.empty()) write_file_atomically(w.table, replaced_section(file, w.section, markdown_table(rows)));
    return hold ? 0 : 3;
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
  auto folder = std::make_shared<std::string>();
  command.add_option("run", *folder, "a run folder, such as runs/quickstart/8f3a2c0d11")->required();
  return [folder] {
    write_report(*folder);
    std::printf("%s\n", (std::filesystem::path(*folder) / "report.html").c_str());
    return 0;
  };
}

}  // namespace headlab
