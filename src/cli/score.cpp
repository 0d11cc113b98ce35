#include "src/decode/score.h"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/cli/command.h"
#include "src/decode/generate.h"
#include "src/run/saved_model.h"
#include "src/task/translation.h"

namespace headlab {

std::function<int()> add_score(CLI::App& command) {
  struct Wanted : ChosenModel {
    int64_t batch = 64;
    bool json = false;
  };
  auto wanted = std::make_shared<Wanted>();
  wanted->add_flags(command, "is asked");
  command.add_option("--batch", wanted->batch, "lines read together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_flag("--json", wanted->json, "write an object a line, with each token and its log probability");
  return [wanted] {
    const auto& w = *wanted;
    const auto run = open_run(w.run, w.stage, w.device);
    const auto* translation = dynamic_cast<const Translation*>(run.task.get());
    const auto* text = dynamic_cast<const WritesText*>(run.task.get());
    if (!translation && !text)
      throw UsageError("score: the run's task is \"" + run.spec->task.type() +
                       "\"; expected translation (a line: source, tab, target) or one of text, such as language_model");
    const auto source = translation ? translation->reads().ids : TextIds{};
    // A language model's lines are parts of a longer text, which nothing ends.
    auto target = translation ? translation->writes() : text->text_ids();
    if (!translation) target.eos = -1;
    std::vector<std::string> lines;
    int64_t read = 0;
    const auto flush = [&] {
      std::vector<std::vector<int64_t>> sources, targets;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto tab = lines[i].find('\t');
        if (translation && tab == std::string::npos)
          throw UsageError("standard input, line " + std::to_string(read - static_cast<int64_t>(lines.size() - i) + 1) +
                           ": expected a source, a tab and its translation, got no tab");
        if (translation) {
          sources.push_back(translation->tokenizers().source.encode(lines[i].substr(0, tab)));
          targets.push_back(translation->tokenizers().target.encode(lines[i].substr(tab + 1)));
        } else {
          targets.push_back(text->encode(lines[i]));
        }
      }
      std::vector<std::vector<double>> scores;
      try {
        scores = score_ids(*run.model, sources, targets, source, target, 8192);
      } catch (const ShapeError& error) {
        throw ShapeError("standard input, from line " + std::to_string(read - static_cast<int64_t>(lines.size()) + 1) +
                         " on: " + error.what());
      }
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto& each = scores[i];
        const auto sum = std::accumulate(each.begin(), each.end(), 0.0);
        if (!w.json) {
          std::printf("%.6f\t%zu\n", sum, each.size());
          continue;
        }
        nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
        const auto unscored =
            targets[i].size() + (target.eos >= 0) - each.size();  // without bos the first token is read alone
        for (std::size_t t = 0; t < each.size(); ++t) {
          const auto place = t + unscored;
          const auto piece = place == targets[i].size() ? std::string("</s>")
                             : translation              ? translation->tokenizers().target.piece(targets[i][place])
                                                        : text->decode({targets[i][place]});
          tokens.push_back({piece, each[t]});
        }
        const auto count = static_cast<double>(each.size());
        const nlohmann::ordered_json object{
            {"text", lines[i]},
            {"log_probability", sum},
            {"tokens", each.size()},
            {"perplexity", each.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(std::exp(-sum / count))},
            {"each", tokens}};
        std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
      }
      std::fflush(stdout);
      lines.clear();
    };
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      ++read;
      lines.push_back(line);
      if (static_cast<int64_t>(lines.size()) == w.batch) flush();
    }
    if (!lines.empty()) flush();
    return 0;
  };
}

}  // namespace headlab
