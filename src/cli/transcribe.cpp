#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/cli/command.h"
#include "src/cli/search_flags.h"
#include "src/data/frames/recordings.h"
#include "src/run/saved_model.h"
#include "src/task/transcription.h"

namespace headlab {

std::function<int()> add_transcribe(CLI::App& command) {
  struct Wanted : ChosenModel {
    std::vector<std::string> files;
    SearchOptions search;
    bool json = false;
  };
  auto wanted = std::make_shared<Wanted>();
  wanted->add_flags(command, "transcribes");
  command.add_option("files", wanted->files, "recordings: WAV, FLAC, Ogg ...")->required();
  add_search_flags(command, wanted->search);
  command.remove_option(command.get_option("--prefix"));  // a transcription begins with what is said first
  command.add_flag("--json", wanted->json, "write {\"file\", \"text\", \"score\"} a line");
  return [wanted] {
    auto& w = *wanted;
    w.search.beam = std::max(w.search.beam, w.search.n_best);
    check_search("transcribe", w.search);
    const auto run = open_run(w.run, w.stage, w.device);
    const auto* task = dynamic_cast<const Transcription*>(run.task.get());
    if (!task)
      throw UsageError("transcribe: the run's task is \"" + run.spec->task.type() + "\"; expected transcription");
    const auto& source = dynamic_cast<const TranscriptionOptions&>(run.spec->task.options()).data;
    const auto* recordings = dynamic_cast<const RecordingsOptions*>(&source.options());
    if (!recordings)
      throw UsageError("transcribe: the run's model reads the frames of \"" + source.type() +
                       "\"; expected one that was trained on recordings");
    int64_t number = 0;
    for (const auto& file : w.files) {
      const FrameText heard{recordings->read(file), {}, {}};
      const auto length = heard.length(recordings->frame_width()), longest = run.model->max_length();
      if (length > longest)
        throw ShapeError(file + ": expected at most " + std::to_string(longest) + " frames (model.max_length), got " +
                         std::to_string(length) + "; cut it into shorter recordings");
      for (const auto& found : task->transcribe(*run.model, heard, w.search, number)) {
        const auto text = recordings->text_of(task->names(found.ids));
        const auto line = w.json ? nlohmann::ordered_json{{"file", file}, {"text", text}, {"score", found.score}}.dump(
                                       -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                                 : file + "\t" + text;
        std::printf("%s\n", line.c_str());
      }
      std::fflush(stdout);
      ++number;
    }
    return 0;
  };
}

}  // namespace headlab
