// What a spec can know of a task before its data is read, and every task through the stages of a run.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "src/run/spec.h"
#include "tests/catch.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

const std::string decoder =
    R"({"type": "decoder_only", "d_model": 16, "decoder": {"layers": 1, "attention": {"heads": 4}}, "embedding": {"max_length": 64}})";

std::string encoder(const std::string& output) {
  return R"({"type": "encoder_only", "d_model": 16, "encoder": {"layers": 1, "attention": {"heads": 4}}, "embedding": {"max_length": 64}, "output": ")" +
         output + "\"}";
}

std::string refused(const std::string& task, const std::string& model, const std::string& stages = R"(["evaluate"])") {
  Folder folder;
  const auto path = folder
                        .write("x.json", "{\"name\": \"x\", \"task\": " + task + ",\n\"model\": " + model +
                                             ",\n\"stages\": " + stages + "}")
                        .string();
  try {
    load_spec(path, {}, /*find_files=*/false);
  } catch (const UsageError& error) {
    std::string message = error.what();
    for (auto at = message.find(path); at != std::string::npos; at = message.find(path))
      message.replace(at, path.size(), "x.json");
    return message.substr(0, message.rfind('\n'));
  }
  return "accepted";
}

std::string generated(const std::string& exercise, const std::string& more = "") {
  return R"({"type": "generated", "exercise": ")" + exercise + "\"" + more + "}";
}

}  // namespace

TEST_CASE("a task says which models and outputs it can use", "[task]") {
  const std::string encoder_decoder = R"({"type": "encoder_decoder"})";
  CHECK(refused(R"({"type": "translation"})", decoder) ==
        "x.json:2:10: model: expected encoder_decoder for the task translation, got decoder_only");
  CHECK(refused(R"({"type": "language_model"})", encoder("tags")) ==
        "x.json:2:10: model: expected decoder_only for the task language_model, got encoder_only");
  CHECK(refused(R"({"type": "tagging"})", encoder("language_model")) ==
        "x.json:2:146: model.output: expected tags for the task tagging, got language_model");
  CHECK(refused(R"({"type": "tagging"})", encoder_decoder) ==
        "x.json:2:10: model: expected encoder_only or decoder_only for the task tagging, got encoder_decoder");
  CHECK(refused(R"({"type": "span"})", encoder("spans")) == "accepted");
  CHECK(refused(generated("copy"), encoder_decoder) == "accepted");
  CHECK(refused(generated("copy"), decoder) ==
        "x.json:2:10: model: expected encoder_decoder for the task generated (copy), got decoder_only");
  CHECK(refused(generated("copy", R"(, "format": "sequence")"), decoder) == "accepted");
  CHECK(refused(generated("recall"), encoder("language_model")) ==
        "x.json:2:10: model: expected decoder_only for the task generated (recall), got encoder_only");
  CHECK(refused(generated("offsets"), encoder("tags")) == "accepted");
  CHECK(refused(generated("offsets"), encoder("classes")) ==
        "x.json:2:146: model.output: expected language_model or tags for the task generated (offsets), got classes");
  CHECK(refused(generated("sentiment"), encoder("classes")) == "accepted");
  CHECK(refused(generated("recall", R"(, "format": "pair")"), decoder) ==
        "x.json:1:77: task.format: expected sequence, since recall has one text; got \"pair\"");
  CHECK(refused(generated("sentiment", R"(, "score": "all")"), encoder("classes")) ==
        "x.json:1:79: task.score: expected answers, since sentiment asks a class; got \"all\"");
}

TEST_CASE("a stage can measure what the task has, wherever it names a metric", "[task]") {
  const std::string task = R"({"type": "tagging"})";
  const auto stages_refused = [&](const std::string& stages) { return refused(task, encoder("tags"), stages); };
  const std::string has = " (it has: accuracy, token_f1, loss)";
  CHECK(stages_refused(R"([{"evaluate": {"metrics": ["accuracy", "bleu"]}}])") ==
        "x.json:3:50: stages[0].evaluate.metrics[1]: the task tagging has no metric \"bleu\"" + has);
  CHECK(stages_refused(R"([{"ablate": {"metric": "acuracy"}}])") ==
        "x.json:3:34: stages[0].ablate.metric: the task tagging has no metric \"acuracy\"; did you mean \"accuracy\"?" +
            has);
  CHECK(stages_refused(R"(["score", {"curve": {"scores": "score", "metric": "entity_f1"}}])")
            .find("stages[1].curve.metric: the task tagging has no metric") != std::string::npos);
  CHECK(stages_refused(R"([{"train": {"validate": {"metrics": ["f1"]}}}])")
            .find("stages[0].train.validate.metrics[0]: the task") != std::string::npos);
  CHECK(stages_refused(R"([{"repeat": {"stages": [{"evaluate": {"metrics": ["bleu"]}}]}}])")
            .find("stages[0].repeat.stages[0].evaluate.metrics[0]: the task") != std::string::npos);
  CHECK(stages_refused(
            R"(["score", "ablate", {"curve": {"scores": "score"}}, {"evaluate": {"metrics": ["token_f1"]}}])") ==
        "accepted");
  CHECK(refused(R"({"type": "tagging", "scheme": "entities"})", encoder("tags"),
                R"([{"evaluate": {"metrics": ["entity_f1"]}}])") == "accepted");
}

TEST_CASE("every task goes through every stage of a run", "[task]") {
  struct Row {
    std::string name, task, model, metric;
  };
  const std::string grammar =
      R"("data": {"type": "grammar", "train": 200, "valid": 40, "test": 40, "max_tokens": 14}, "tokenizer": {"type": "word"})";
  const std::string texts =
      "{\"text\": \"a b c\", \"label\": \"x\"}\n{\"text\": \"b b\", \"label\": \"y\"}\n{\"text\": \"c\", \"label\": "
      "\"x\"}\n";
  const std::string sizes = R"(, "train": 60, "valid": 12, "test": 12)";
  const std::vector<Row> rows{
      {"lm",
       R"({"type": "language_model", "block": 16, "units": "characters", "data": {"type": "grammar", "train": 40, "valid": 5, "test": 5}})",
       decoder, "loss"},
      {"classes",
       R"({"type": "classification", "tokenizer": {"type": "word"}, "data": {"type": "jsonl", "train": "x.jsonl", "valid": "x.jsonl", "test": "x.jsonl"}})",
       encoder("classes"), "accuracy"},
      {"tags", R"({"type": "tagging", )" + grammar + "}", encoder("tags"), "accuracy"},
      {"spans", R"({"type": "span", )" + grammar + "}", encoder("spans"), "exact_match"},
      {"recall", generated("recall", sizes), decoder, "accuracy"},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    Folder folder;
    folder.write("x.jsonl", texts);
    const auto spec = folder.write("x.json", "{\"name\": \"" + row.name + "\", \"task\": " + row.task +
                                                 ", \"model\": " + row.model + R"(, "stages": [
        {"train": {"steps": 3, "batch": {"max_tokens": 256}, "log_every": 1, "validate_every": 3}}, "evaluate", "score",
        {"ablate": {"random": {"sets": 1, "size": 2}}}, {"curve": {"scores": "score", "fractions": [0, 0.5]}},
        {"prune": {"scores": "score", "select": {"fraction": 0.5}}}, {"evaluate": {"name": "pruned", "limit": 3}}]})");
    const auto out = folder.path() / "runs";
    const auto run = run_program({"run", spec.string(), "--out", out.string()});
    INFO(run.err);
    REQUIRE(run.code == 0);
    const auto results = nlohmann::json::parse(read_file(only_run(out, row.name) / "results.json"));
    const auto& stages = results.at("stages");
    CHECK(stages.at("evaluate").at("metrics").contains("loss"));
    CHECK(stages.at("train").at("valid").contains("loss"));
    CHECK(stages.at("ablate").at("metric") == row.metric);
    CHECK(stages.at("ablate").at("count") == 4);
    CHECK(stages.at("curve").at("metric") == row.metric);
    CHECK(stages.at("curve").at("points")[1].at("heads_kept") == 2);
    CHECK(stages.at("pruned").at("heads") == 2);
    CHECK(run_program({"show", only_run(out, row.name).string()}).code ==
          0);  // the task is made again from the run's files
  }
}

TEST_CASE("the program writes exercises, and says what is wrong with their options", "[task]") {
  Folder folder;
  const auto out = (folder.path() / "new").string();
  const auto run = run_program({"data", "exercise", "recall", "--out", out, "--set", "train=7", "--set", "valid=2",
                                "--set", "test=3", "--set", "exercise.gap=2"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.out.find("7 / 2 / 3 examples") != std::string::npos);
  CHECK(read_file(folder.path() / "new" / "test.jsonl").find("\"~\",\"~\"") != std::string::npos);
  const auto wrong = run_program({"data", "exercise", "recall", "--out", out, "--set", "exercise.pairz=7"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("exercise.pairz=7: unknown key; did you mean \"pairs\"?") != std::string::npos);
}
