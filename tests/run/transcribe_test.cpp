#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/wav.h"

using namespace headlab;
using namespace headlab::test;
namespace fs = std::filesystem;

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  std::istringstream in(text);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Tones of three pitches, each the word of its name, in recordings of some length.
void write_tone(const fs::path& file, int pitch, int take, int64_t rate = 8000, int64_t samples = 0) {
  fs::create_directories(file.parent_path());
  Wav wav{.rate = rate};
  if (samples == 0) samples = 900 + 130 * take;
  for (int64_t n = 0; n < samples; ++n)
    wav.samples.push_back(static_cast<int64_t>(9000 * std::sin(0.12 * std::pow(3, pitch) * static_cast<double>(n)) +
                                               static_cast<double>((n * (7 + take)) % 89)));
  wav.write(file.string());
}

/// A run of a spec over `corpus`/WORD_TAKE.wav, the words a, b and c; what it evaluated is in outputs/test.txt.
fs::path trained(const Folder& folder, const std::string& name, const std::string& data, const std::string& model,
                 int steps, const std::string& search) {
  const auto spec = folder.write(name + ".json", R"({"name": ")" + name + R"(", "seed": 1,
    "task": {"type": "transcription", "data": {"type": "recordings", "list": {"type": "file_names",
      "names": "corpus/{word}_{take}.wav", "by": "take", "train": ["3-9"], "valid": ["2"], "test": ["0-1"]},
      "text": "word", "features": {"rate": 8000, "mels": 12, "normalise": "none"}, )" +
                                                     data + R"(}},
    "model": {"d_model": 16, "frame_width": 12, "max_length": 40, "dropout": 0.0, )" +
                                                     model + R"(},
    "stages": [{"train": {"steps": )" + std::to_string(steps) +
                                                     R"(, "batch": {"max_tokens": 400}, "label_smoothing": 0.0,
                          "schedule": {"type": "constant", "peak": 0.01}}},
               {"evaluate": {"name": "test", "metrics": ["token_error_rate"], "search": )" +
                                                     search + "}}]}");
  const auto done =
      run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--quiet", "--threads", "1"});
  INFO(done.out << done.err);
  REQUIRE(done.code == 0);
  return only_run(folder.path() / "runs", name);
}

}  // namespace

TEST_CASE("a run writes down sound files where its data is not, as it did where it was evaluated",
          "[run][recordings][paper-23]") {
  const Folder folder;
  const auto corpus = folder.path() / "corpus", elsewhere = folder.path() / "elsewhere";
  Lines files;
  for (int pitch = 0; pitch < 3; ++pitch)
    for (int take = 0; take < 6; ++take) {
      const auto name = std::string(1, static_cast<char>('a' + pitch)) + "_" + std::to_string(take) + ".wav";
      write_tone(corpus / name, pitch, take);
      if (take < 2) files.push_back((elsewhere / name).string());
    }
  const auto by_letters =
      trained(folder, "letters", R"("units": "characters", "written": {"a": "oh no", "b": "yes", "c": "a b"})",
              R"("type": "frame_transcriber")", 100, R"({"beam": 2})");
  const auto by_words =
      trained(folder, "words", R"("units": "words", "written": {"a": "oh no", "b": "yes", "c": "a b"})",
              R"("type": "frame_ctc")", 300, R"({"beam": 1})");
  fs::rename(corpus, elsewhere);

  const auto transcribed = [&](const fs::path& run, Lines more) {
    Lines arguments{"transcribe", run.string()};
    arguments.insert(arguments.end(), files.begin(), files.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = run_program(arguments);
    INFO(done.out << done.err);
    CHECK(done.code == 0);
    CHECK(done.err.empty());
    return lines_of(done.out);
  };
  for (const bool letters : {true, false}) {
    const auto& run = letters ? by_letters : by_words;
    const auto evaluated = lines_of(read_file(run / "outputs" / "test.txt"));
    REQUIRE(evaluated.size() == files.size());
    CHECK(std::set<std::string>(evaluated.begin(), evaluated.end()).size() > 1);
    const auto got = transcribed(run, {"--beam", letters ? "2" : "1"});
    REQUIRE(got.size() == files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      auto expected = evaluated[i];
      if (letters) {  // its symbols stand apart there: "o h <space> n o"
        std::istringstream symbols(evaluated[i]);
        expected.clear();
        for (std::string symbol; symbols >> symbol;) expected += symbol == "<space>" ? " " : symbol;
      }
      CHECK(got[i] == files[i] + "\t" + expected);
    }
    if (letters) {  // it has learned what they are called
      CHECK(got[0] == files[0] + "\toh no");
      CHECK(got[2] == files[2] + "\tyes");
    }
  }
  // Further hypotheses are told with their scores, the best first.
  const auto best = transcribed(by_words, {"--n-best", "2", "--json"});
  REQUIRE(best.size() == 2 * files.size());
  const auto first = nlohmann::json::parse(best[0]), second = nlohmann::json::parse(best[1]);
  CHECK(first.at("file") == files[0]);
  CHECK(second.at("file") == files[0]);
  CHECK(first.at("text") != second.at("text"));
  CHECK(first.at("score").get<double>() >= second.at("score").get<double>());
  CHECK(run_program({"show", by_letters.string()}).code == 0);
  CHECK(run_program({"transcribe", by_words.string(), files[0], "--prefix", "oh"}).code == 2);

  const auto refusal = [&](const fs::path& file) {
    const auto refused = run_program({"transcribe", by_letters.string(), files[0], file.string(), "--beam", "1"});
    CHECK(refused.code == 1);
    CHECK(lines_of(refused.out).size() == 1);  // the file before it
    return refused.err;
  };
  write_tone(elsewhere / "fast.wav", 1, 1, 16000);
  CHECK(refusal(elsewhere / "fast.wav") ==
        (elsewhere / "fast.wav").string() +
            ": expected 8000 samples a second (features.rate), got 16000: name the rate of all recordings there before "
            "training, or convert this one (sox, ffmpeg)\n");
  // 40 frames are 25 ms and 39 hops of 10 ms.
  write_tone(elsewhere / "fits.wav", 1, 1, 8000, 200 + 39 * 80);
  write_tone(elsewhere / "long.wav", 1, 1, 8000, 200 + 40 * 80);
  CHECK(run_program({"transcribe", by_letters.string(), (elsewhere / "fits.wav").string()}).code == 0);
  CHECK(refusal(elsewhere / "long.wav") ==
        (elsewhere / "long.wav").string() +
            ": expected at most 40 frames (model.max_length), got 41; cut it into shorter recordings\n");
  CHECK(refusal(elsewhere / "none.wav") == (elsewhere / "none.wav").string() + ": cannot be read: no such file\n");
  CHECK_THAT(refusal(by_letters / "spec.json"), ContainsSubstring("spec.json: expected a recording"));
}

TEST_CASE("runs of other tasks, and of frames that are no recordings, don't write down sound files",
          "[run][recordings]") {
  const Folder folder;
  const auto refusal = [&](const std::string& name, const std::string& task, const std::string& model) {
    const auto spec = folder.write(name + ".json", R"({"name": ")" + name + R"(", "task": {"type": ")" + task +
                                                       R"(", "data": {"type": "phones", "phones": 3, "width": 4,
      "train": 20, "valid": 5, "test": 5}}, "model": {"d_model": 8, )" +
                                                       model + R"(},
      "stages": [{"train": {"steps": 1, "batch": {"max_tokens": 200}}}]})");
    const auto done = run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--quiet"});
    INFO(done.err);
    REQUIRE(done.code == 0);
    const auto refused =
        run_program({"transcribe", only_run(folder.path() / "runs", name).string(), spec.string(), "--beam", "1"});
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    return refused.err;
  };
  CHECK(refusal("phones", "transcription", R"("type": "frame_ctc", "frame_width": 4)") ==
        "transcribe: the run's model reads the frames of \"phones\"; expected one that was trained on recordings\n");
  CHECK(
      refusal(
          "classes", "frames",
          R"("type": "frame_encoder", "embedding": {"frame_width": 4}, "encoder": {"layers": 1}, "output": "tags")") ==
      "transcribe: the run's task is \"frames\"; expected transcription\n");
}
