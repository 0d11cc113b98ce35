#include <csignal>
#include <cstdio>
#include <filesystem>

#include "src/cli/command.h"
#include "src/run/run.h"
#include "src/spec/sweep.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

std::atomic<bool> stop_asked{false};

void ask_to_stop(int signal) {
  if (stop_asked.exchange(true)) std::_Exit(128 + signal);  // the second time: at once
}

struct Arguments {
  std::string spec, out = "runs", device, part;
  std::vector<std::string> set;
  int threads = 0;
  bool quiet = false, fresh = false, json = false;
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
  command.add_flag("--quiet", a.quiet, "print nothing but errors");
  command.add_flag("--json", a.json, "print the results as JSON on standard output, and nothing else");
  command.add_flag("--fresh", a.fresh, "start again even where an earlier run of the same spec could be gone on with");
  return [arguments] {
    const auto& a = *arguments;
    auto variants = load_spec(a.spec, a.set);
    if (!a.part.empty()) {
      const auto part = parse_part(a.part);
      std::vector<RunVariant> mine;
      for (std::size_t i = part.number - 1; i < variants.size(); i += part.count) mine.push_back(variants[i]);
      variants = mine;
    }
    RunFlags flags;
    flags.out = a.out;
    if (!a.device.empty()) flags.device = a.device;
    flags.threads = a.threads;
    flags.fresh = a.fresh;
    flags.command = "tools/headlab run " + a.spec;
    for (const auto& set : a.set) flags.command += " --set '" + set + "'";
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
    bool hold = true;
    auto all = nlohmann::ordered_json::array();
    for (const auto& variant : variants) {
      Console console(a.quiet || a.json ? Console::Kind::quiet : Console::Kind::normal);
      try {
        const auto outcome = run_variant(variant, a.spec, flags, console, stop_asked);
        hold = hold && outcome.expectations_hold;
        auto results = outcome.results;
        results["folder"] = outcome.folder.string();
        all.push_back(results);
      } catch (const Interrupted& stopped) {
        throw Interrupted(std::string("stopped ") + stopped.what() + ". Go on with: " + flags.command + " (resumes by itself)");
      }
    }
    if (a.json) std::printf("%s\n", (all.size() == 1 ? all[0] : all).dump(2).c_str());
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
