#include "src/decode/generate.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/cli/command.h"
#include "src/cli/search_flags.h"
#include "src/run/saved_model.h"

namespace headlab {

std::function<int()> add_generate(CLI::App& command) {
  struct Wanted : ChosenModel {
    SearchOptions search;
    int64_t batch = 64;
    bool json = false;
  };
  auto wanted = std::make_shared<Wanted>();
  auto& search = wanted->search;
  search.beam = 1;
  search.temperature = 1;
  search.max_length = 200;
  wanted->add_flags(command, "writes");
  add_search_flags(command, search);
  command.add_option("--batch", wanted->batch, "prompts continued together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_flag("--json", wanted->json,
                   "write {\"prompt\", \"text\", \"score\"} a line, for texts of several lines");
  const auto *beam = command.get_option("--beam"), *temperature = command.get_option("--temperature");
  return [wanted, beam, temperature] {
    auto& w = *wanted;
    if (beam->count() > 0 && temperature->count() == 0) w.search.temperature = 0;
    if (beam->count() > 0 && w.search.draws())
      throw UsageError(
          "generate: --beam: expected --temperature 0 beside it, since a beam searches where a temperature draws");
    check_search("generate", w.search);
    const auto run = open_run(w.run, w.stage, w.device);
    const auto* text = dynamic_cast<const WritesText*>(run.task.get());
    if (!text)
      throw UsageError("generate: the run's task is \"" + run.spec->task.type() +
                       "\"; expected one whose model continues text, such as language_model (headlab translate is for "
                       "translations)");
    std::vector<std::string> prompts;
    int64_t done = 0;
    const auto flush = [&] {
      const auto found = continue_texts(*run.model, *text, prompts, w.search, 16384, done);
      for (std::size_t i = 0; i < found.size(); ++i)
        for (const auto& [score, written] : found[i]) {
          const auto line =
              w.json ? nlohmann::ordered_json{{"prompt", prompts[i]}, {"text", written}, {"score", score}}.dump(
                           -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                     : written;
          std::printf("%s\n", line.c_str());
        }
      std::fflush(stdout);
      done += static_cast<int64_t>(prompts.size());
      prompts.clear();
    };
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      prompts.push_back(line);
      if (static_cast<int64_t>(prompts.size()) == w.batch) flush();
    }
    if (!prompts.empty()) flush();
    return 0;
  };
}

}  // namespace headlab
