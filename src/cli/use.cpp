
#include <cstdio>
#include <iostream>

#include "modules/mixer/attention_in.h"
#include "modules/model/cost.h"
#include "modules/tensor/torch.h"
#include "src/cli/command.h"
#include "src/cli/search_flags.h"
#include "src/data/generated/generate.h"
#include "src/data/grammar/grammar.h"
#include "src/run/saved_model.h"
#include "src/spec/mistakes.h"
#include "src/spec/override.h"
#include "src/spec/reader.h"
#include "src/task/translation.h"
#include "src/terminal/format.h"
#include "src/text/lines.h"

namespace headlab {

std::function<int()> add_translate(CLI::App& command) {
  struct Wanted : ChosenModel {
    SearchOptions search;
    int64_t batch = 64;
    bool scores = false;
  };
  auto wanted = std::make_shared<Wanted>();
  wanted->add_flags(command, "translates");
  add_search_flags(command, wanted->search);
  command.add_option("--batch", wanted->batch, "lines translated together")->capture_default_str();
  command.add_flag("--scores", wanted->scores, "write score, tab, translation");
  return [wanted] {
    auto& w = *wanted;
    w.search.beam = std::max(w.search.beam, w.search.n_best);
    check_search("translate", w.search);
    const auto run = open_run(w.run, w.stage, w.device);
    const auto* task = dynamic_cast<const Translation*>(run.task.get());
    if (!task) throw UsageError("translate: the run's task is \"" + run.spec->task.type() + "\"; expected translation");
    std::vector<std::string> lines;
    int64_t done = 0, read = 0, odd = 0, first_odd = 0;
    const auto flush = [&] {
      try {
        for (const auto& found : task->translate(*run.model, lines, w.search, done))
          for (const auto& [score, text] : found) {
            if (w.scores) std::printf("%.6f\t", score);
            std::printf("%s\n", text.c_str());
          }
      } catch (const ShapeError& error) {
        throw ShapeError("standard input, from line " + std::to_string(read - static_cast<int64_t>(lines.size()) + 1) +
                         " on: " + error.what());
      }
      std::fflush(stdout);
      done += static_cast<int64_t>(lines.size());
      lines.clear();
    };
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      ++read;
      if (const auto fault = line_fault(line); fault != LineFault::none && fault != LineFault::empty && odd++ == 0)
        first_odd = read;
      lines.push_back(line);
      if (static_cast<int64_t>(lines.size()) == w.batch) flush();
    }
    if (!lines.empty()) flush();
    // Line n stays line n: nothing is left out.
    if (odd > 0)
      std::fprintf(stderr,
                   "%s of the lines not UTF-8, with NUL, or too long (the first: %s); what could be read of them was "
                   "translated\n",
                   with_commas(odd).c_str(), with_commas(first_odd).c_str());
    return 0;
  };
}

std::function<int()> add_show(CLI::App& command) {
  struct Wanted {
    std::string what, stage;
    std::vector<int64_t> lengths{32, 128, 512};
  };
  auto wanted = std::make_shared<Wanted>();
  command.add_option("what", wanted->what, "a run folder or a spec")->required();
  command.add_option("--stage", wanted->stage, "the stage whose model is shown");
  command.add_option("--lengths", wanted->lengths, "lengths of the texts that costs are given for")
      ->capture_default_str();
  return [wanted] {
    const bool spec = std::filesystem::is_regular_file(wanted->what);
    const auto run = spec ? open_spec(wanted->what) : open_run(wanted->what, wanted->stage, "cpu");
    std::printf("%s  %s, model of stage %s\n", run.spec->name.c_str(), run.spec->model.type().c_str(),
                run.stage.c_str());
    std::printf("%s parameters, %s vocabulary\n\n", with_commas(run.model->parameter_count()).c_str(),
                with_commas(run.model->target_vocabulary()).c_str());
    std::printf("%-14s %-20s %10s %12s %14s  %s\n", "attention", "heads", "of", "parameters", "cache / token",
                "kernel");
    for (const auto& [site, mixer] : run.model->mixers()) {
      std::string heads;
      for (auto head : mixer->heads()) heads += (heads.empty() ? "" : " ") + std::to_string(head);
      int64_t parameters = 0;
      for (const auto& parameter : mixer->parameters()) parameters += parameter.numel();
      const auto* attention = attention_in(*mixer);
      const auto cache = mixer->cache_numbers();
      Forward none;
      const bool fused = attention && attention->fusable(site, none);
      std::printf("%-14s %-20s %10lld %12s %14s  %s\n", to_string(site).c_str(), heads.empty() ? "none" : heads.c_str(),
                  static_cast<long long>(mixer->original_heads()), with_commas(parameters).c_str(),
                  (with_commas(cache) + " numbers").c_str(),
                  mixer->heads().empty() ? "bias only"
                  : fused                ? "fused"
                                         : "explicit");
    }
    const auto bytes = static_cast<double>(torch::elementSize(run.model->dtype()));
    const auto weights = bytes * static_cast<double>(run.model->parameter_count());
    std::printf("\nmemory: weights %s; with gradients and Adam's two averages %s; activations beside that\n\n",
                byte_count(weights).c_str(), byte_count(4 * weights).c_str());
    // Of source and target alike, one text a batch; FLOPs of the products of matrices, a multiply-add is 2.
    std::printf("%-10s %16s %16s %16s\n", "length", "FLOPs / token", "FLOPs / text", "cache / text");
    for (const auto length : wanted->lengths) {
      const auto of_text = cost(*run.model, length, length);
      const auto cached = bytes * static_cast<double>((of_text.cache_per_target + of_text.cache_per_source) * length);
      std::printf("%-10s %16s %16s %16s\n", with_commas(length).c_str(), short_number(of_text.flops_per_token).c_str(),
                  short_number(static_cast<double>(of_text.flops)).c_str(), byte_count(cached).c_str());
    }
    return 0;
  };
}

std::function<int()> add_data(CLI::App& command) {
  command.require_subcommand(1);
  struct Wanted {
    grammar::GrammarOptions grammar;
    std::string out = "data/grammar", exercise, exercise_out = "data/exercise";
    std::vector<std::string> set;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* grammar =
      command.add_subcommand("grammar", "English-German sentences with gold alignments, trees and coreference");
  grammar->add_option("--out", wanted->out, "the folder that is written")->capture_default_str();
  grammar->add_option("--train", wanted->grammar.train, "training pairs")->capture_default_str();
  grammar->add_option("--valid", wanted->grammar.valid, "validation pairs")->capture_default_str();
  grammar->add_option("--test", wanted->grammar.test, "test pairs, each with a combination that training lacks")
      ->capture_default_str();
  grammar->add_option("--seed", wanted->grammar.seed, "seed of all draws")->capture_default_str();
  auto* exercise =
      command.add_subcommand("exercise", "small data of a known rule, as JSON lines: copy, recall, dyck ...");
  exercise->add_option("exercise", wanted->exercise, "which one: headlab list exercise")->required();
  exercise->add_option("--out", wanted->exercise_out, "the folder that is written")->capture_default_str();
  exercise->add_option("--set", wanted->set, "an option: --set train=1000 --set exercise.length.max=8; may be repeated")
      ->take_all();
  return [wanted, exercise] {
    if (exercise->parsed()) {
      nlohmann::ordered_json chosen{{"exercise", {{"type", wanted->exercise}}}};
      auto document = Document::parse_text(chosen.dump(), "headlab data exercise");
      throw_mistakes(apply_overrides(document, wanted->set));
      GeneratedOptions options;
      read_or_throw(document, options);
      write_generated(options, wanted->exercise_out);
      std::printf("%s: %s / %s / %s examples\n", wanted->exercise_out.c_str(), with_commas(options.train).c_str(),
                  with_commas(options.valid).c_str(), with_commas(options.test).c_str());
      return 0;
    }
    grammar::write(grammar::generate(wanted->grammar), wanted->out);
    std::printf("%s: %s / %s / %s pairs\n", wanted->out.c_str(), with_commas(wanted->grammar.train).c_str(),
                with_commas(wanted->grammar.valid).c_str(), with_commas(wanted->grammar.test).c_str());
    return 0;
  };
}

}  // namespace headlab
