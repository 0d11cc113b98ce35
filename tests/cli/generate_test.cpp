#include <algorithm>
#include <sstream>

#include "tests/catch.h"
#include "tests/faults/tiny_files.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("translations are searched, drawn and begun as the command line says", "[cli]") {
  Folder folder;
  auto text = tiny_spec(R"([{"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}}])");
  const auto spec = folder.write("x.json", text);
  REQUIRE(run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--quiet", "--set",
                       "task.tokenizer.type=wordpiece"})
              .code == 0);
  const auto run = only_run(folder.path() / "runs", "tiny").string();
  const std::string input = "The dog sleeps.\nA cat sees the dog.\nThe dog sleeps.\n";
  const auto translate = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"translate", run, "--max-length", "12"});
    const auto done = run_program(flags, 0, input);
    INFO(done.err);
    REQUIRE(done.code == 0);
    return lines_of(done.out);
  };
  const auto greedy = translate({"--beam", "1"}), drawn = translate({"--temperature", "1", "--seed", "3"});
  REQUIRE(greedy.size() == 3);
  REQUIRE(drawn.size() == 3);
  CHECK(greedy[0] == greedy[2]);
  CHECK(drawn[0] != drawn[2]);  // the same line, other draws
  CHECK(drawn == translate({"--temperature", "1", "--seed", "3"}));
  CHECK(drawn == translate({"--temperature", "1", "--seed", "3", "--batch", "1"}));
  CHECK(drawn != translate({"--temperature", "1", "--seed", "4"}));
  CHECK(translate({"--temperature", "1", "--top-k", "1"}) == greedy);
  CHECK(translate({"--temperature", "1", "--n-best", "4"}).size() == 12);
  for (const auto& flags : {std::vector<std::string>{"--beam", "1"}, {"--beam", "3"}, {"--temperature", "1"}}) {
    auto with_prefix = flags;
    with_prefix.insert(with_prefix.end(), {"--prefix", "Die Katze"});
    for (const auto& line : translate(with_prefix)) CHECK(line.rfind("Die Katze", 0) == 0);
  }
  for (const auto& [flags, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--top-k", "5"}, "translate: --top-k: expected a temperature above 0 beside it"},
           {{"--beam", "0"}, "--beam"},
           {{"--top-p", "1.5"}, "--top-p"}}) {
    std::vector<std::string> wrong{"translate", run};
    wrong.insert(wrong.end(), flags.begin(), flags.end());
    const auto refused = run_program(wrong, 0, input);
    CHECK(refused.code == 2);
    CHECK(refused.err.find(message) != std::string::npos);
  }
  const auto other_task = run_program({"generate", run}, 0, "The\n");
  CHECK(other_task.code == 2);
  CHECK(other_task.err.find("generate: the run's task is \"translation\"; expected one whose model continues text") !=
        std::string::npos);
  const auto both = run_program({"generate", run, "--beam", "3", "--temperature", "1"}, 0, "The\n");
  CHECK(both.code == 2);
  CHECK(both.err.find("generate: --beam: expected --temperature 0 beside it") != std::string::npos);
}

TEST_CASE("a run folder translates and writes on where its data is not", "[cli]") {
  const TinyFiles files;
  const auto translator = files.spec("[" + train_stage(2) + "]");
  REQUIRE(run_program({"run", translator, "--out", files.out(), "--quiet"}).code == 0);
  Folder folder;
  folder.write("book.txt", TinyFiles::lines(80, 0, false));
  const auto writer = folder.write("writer.json", R"({
    "name": "writer",
    "task": {"type": "language_model", "data": {"type": "file", "file": "book.txt"}, "units": "characters", "block": 16},
    "model": {"type": "decoder_only", "d_model": 16, "decoder": {"layers": 1, "attention": {"heads": 2}}},
    "stages": [)" + train_stage(2) + "]}");
  REQUIRE(run_program({"run", writer.string(), "--out", (folder.path() / "runs").string(), "--quiet"}).code == 0);

  const auto elsewhere = folder.path() / "elsewhere";
  const auto used = [](const std::string& how, const std::string& run) {
    const auto done = run_program({how, run, "--max-length", "6"}, 0, "a b c\n");
    INFO(done.err);
    CHECK(done.code == 0);
    CHECK(done.err.empty());
    return done.out;
  };
  const auto translated = used("translate", files.run().string());
  const auto written = used("generate", only_run(folder.path() / "runs", "writer").string());
  std::filesystem::create_directory(elsewhere);
  std::filesystem::rename(files.run(), elsewhere / "translator");
  std::filesystem::rename(only_run(folder.path() / "runs", "writer"), elsewhere / "writer");
  for (const char* name : {"train.src", "train.tgt", "valid.src", "valid.tgt", "test.src", "test.tgt"})
    std::filesystem::remove(files / name);
  std::filesystem::remove(folder.path() / "book.txt");
  CHECK(used("translate", (elsewhere / "translator").string()) == translated);
  CHECK(used("generate", (elsewhere / "writer").string()) == written);
  CHECK(run_program({"show", (elsewhere / "writer").string()}).code == 0);
}
