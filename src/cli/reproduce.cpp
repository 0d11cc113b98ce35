#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "modules/base/nearest.h"
#include "src/cli/command.h"
#include "src/cli/side_by_side.h"
#include "src/cli/stop.h"
#include "src/run/estimate.h"
#include "src/run/ledger.h"
#include "src/terminal/format.h"
#include "src/terminal/screen.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

struct ReproduceFlags {
  std::vector<std::string> wanted;
  std::string specs = "experiments/papers", out = "runs", device, table, section = "claims";
  int threads = 0, jobs = 1;
  bool quiet = false, dry = false;
};

std::vector<std::string> specs_in(const fs::path& folder) {
  std::vector<std::string> inside;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") inside.push_back(entry.path().string());
  std::sort(inside.begin(), inside.end());
  return inside;
}

bool all_of_these(const std::string& text, const char* characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string::npos;
}

/// What a spec says its paper is: "1905.09418".
std::string paper_of(const std::string& spec) {
  const auto document = Document::load(spec);
  const auto* paper = document.root().kind == Node::Kind::object ? document.root().find("paper") : nullptr;
  return paper && paper->kind == Node::Kind::string ? paper->text : "";
}

/// Specs by their files, their folders, the number of their paper (22) or its name on arXiv (1905.09418); each once.
std::vector<std::string> chosen_specs(const ReproduceFlags& flags) {
  std::vector<std::string> chosen;
  const auto add = [&](const std::string& spec) {
    if (std::find(chosen.begin(), chosen.end(), spec) == chosen.end()) chosen.push_back(spec);
  };
  const auto known = [&] {
    if (!fs::is_directory(flags.specs))
      throw UsageError("reproduce: no folder " + flags.specs +
                       " here, in which papers would be looked for; name specs, folders, or it by --specs");
    return specs_in(flags.specs);
  };
  for (const auto& word : flags.wanted.empty() ? std::vector<std::string>{flags.specs} : flags.wanted) {
    if (fs::is_directory(word)) {
      for (const auto& spec : specs_in(word)) add(spec);
      continue;
    }
    const bool number = all_of_these(word, "0123456789"), paper = !number && all_of_these(word, "0123456789.");
    if (fs::exists(word) || !(number || paper)) {
      if (flags.wanted.empty()) known();  // says that it is not there
      add(word);
      continue;
    }
    std::vector<std::string> there;
    bool any = false;
    for (const auto& spec : known()) {
      const auto name = number ? std::to_string(paper_number(spec)) : paper_of(spec);
      const bool fits =
          number ? name.size() <= 18 && word.size() <= 18 && paper_number(spec) == std::stoll(word) : name == word;
      if (fits) add(spec);
      any = any || fits;
      if (!name.empty() && name != "0" && std::find(there.begin(), there.end(), name) == there.end())
        there.push_back(name);
    }
    if (any) continue;
    std::string list;
    for (const auto& name : there) list += (list.empty() ? "" : ", ") + name;
    throw UsageError("reproduce: no spec of paper " + in_quotes(word) + " in " + flags.specs +
                     " (papers there: " + (list.empty() ? "none" : list) + ")");
  }
  if (chosen.empty())
    throw UsageError("reproduce: no specs (.json) in " + (flags.wanted.empty() ? flags.specs : flags.wanted.front()));
  return chosen;
}

class Reproduction {
 public:
  Reproduction(const ReproduceFlags& flags, std::string command)
      : flags_(flags), command_(std::move(command)), specs_(chosen_specs(flags)) {
    for (const auto& spec : specs_) read_.push_back(load_spec(spec, {}));  // all mistakes before anything runs
    if (!flags_.table.empty())
      file_ = replaced_section(read_file(flags_.table), flags_.section, "");  // a missing section too
  }

  int run() {
    const auto& stop_asked = stop_on_signals();
    const auto begun = std::chrono::steady_clock::now();
    say("reproduce: " + std::to_string(specs_.size()) + (specs_.size() == 1 ? " spec" : " specs"));
    const auto first = left();
    told_ = first.done;
    say(labelled("time", estimate_text(first)));
    if (flags_.dry) {
      for (std::size_t i = 0; i < specs_.size(); ++i) {
        auto flags = flags_of(i);
        std::printf("%s\n",
                    labelled("", specs_[i] + ": " + estimate_text(estimate(read_[i], flags, flags_.jobs))).c_str());
      }
      return 0;
    }
    std::vector<LedgerEntry> entries;
    bool hold = true, failed = false;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const auto& spec = *read_[i].front().spec;
      try {
        auto flags = flags_of(i);
        side_by_side(specs_[i], read_[i].size(), flags_.jobs, {}, flags_.quiet, flags);
        const auto outcome =
            run_experiment(read_[i], specs_[i], flags, flags_.quiet ? Console::Kind::quiet : Console::Kind::normal,
                           std::nullopt, stop_asked, [&] {
                             if (flags_.jobs == 1) tell_left();
                           });
        if (flags_.jobs > 1) tell_left();
        hold = hold && outcome.holds;
        entries.push_back(ledger_entry(specs_[i], spec, outcome));
      } catch (const Interrupted&) {
        throw;
      } catch (const std::exception& error) {  // the others are not lost with it
        if (stop_asked) throw;
        std::fprintf(stderr, "%s: %s\n", specs_[i].c_str(), error.what());
        entries.push_back(failed_entry(specs_[i], spec, error.what()));
        failed = true;
      }
      keep_in_ledger(flags_.out, {entries.back()});
    }
    const auto screen = Screen::of(1);
    std::printf("%s", ledger_text(entries, screen.interactive ? screen.columns : 240).c_str());
    say(ledger_answer(entries));
    double in_all = 0;
    for (const auto& entry : entries) in_all += entry.seconds;
    say("ledger: " + (fs::path(flags_.out) / "ledger.json").string() + ", ledger.csv   (" +
        duration(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()) +
        " now; the runs took " + duration(in_all) + " in all)");
    if (!flags_.table.empty())
      write_file_atomically(flags_.table, replaced_section(file_, flags_.section, markdown_table(entries)));
    return failed ? 1 : hold ? 0 : 3;
  }

 private:
  RunFlags flags_of(std::size_t spec) const {
    RunFlags flags;
    flags.out = flags_.out;
    if (!flags_.device.empty()) flags.device = flags_.device;
    flags.threads = flags_.jobs > 1 ? threads_of_each(flags_.threads, flags_.jobs) : flags_.threads;
    flags.command = "tools/headlab run " + specs_[spec];
    flags.go_on = command_;
    return flags;
  }

  Estimate left() const {
    Estimate all;
    for (std::size_t i = 0; i < specs_.size(); ++i) all += estimate(read_[i], flags_of(i), flags_.jobs);
    return all;
  }

  void tell_left() {
    if (flags_.quiet) return;
    const auto now = left();
    if (now.done == told_) return;  // the run was done before
    told_ = now.done;
    say(labelled("time", left_text(now)));
  }

  void say(const std::string& text) const {
    if (!flags_.quiet) std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  const ReproduceFlags& flags_;
  std::string command_;
  std::vector<std::string> specs_;
  std::vector<std::vector<RunVariant>> read_;
  std::string file_;
  std::size_t told_ = 0;
};

/// What goes on with the same.
std::string command_of(const ReproduceFlags& flags) {
  std::string command = "tools/headlab reproduce";
  for (const auto& word : flags.wanted) command += " " + word;
  const ReproduceFlags plain;
  const auto add = [&](const std::string& flag, const std::string& value, const std::string& usual) {
    if (value != usual) command += " " + flag + " " + value;
  };
  add("--specs", flags.specs, plain.specs);
  add("--out", flags.out, plain.out);
  add("--device", flags.device, plain.device);
  add("--threads", std::to_string(flags.threads), std::to_string(plain.threads));
  add("--jobs", std::to_string(flags.jobs), std::to_string(plain.jobs));
  add("--table", flags.table, plain.table);
  add("--section", flags.section, plain.section);
  return command;
}

}  // namespace

std::function<int()> add_reproduce(CLI::App& command) {
  auto flags = std::make_shared<ReproduceFlags>();
  auto& f = *flags;
  command.add_option(
      "specs", f.wanted,
      "papers by number (22) or arXiv name (1905.09418), specs, or folders of specs; none: all of --specs");
  command.add_option("--specs", f.specs, "the folder in which papers are looked for")->capture_default_str();
  command.add_option("--out", f.out, "where run folders and the ledger go")->capture_default_str();
  command.add_option("--device", f.device, "cpu, cuda or cuda:N; wins over the specs");
  command.add_option("--threads", f.threads, "CPU threads; results depend on their number");
  add_jobs(command, f.jobs);
  command.add_option("--table", f.table,
                     "write the table into this Markdown file, between <!-- begin claims --> and <!-- end claims -->");
  command.add_option("--section", f.section, "the name of that section")->capture_default_str();
  command.add_flag("--dry", f.dry, "say how long it would take, and run nothing");
  command.add_flag("--quiet", f.quiet, "print the ledger alone");
  return [flags] { return Reproduction(*flags, command_of(*flags)).run(); };
}

}  // namespace headlab
