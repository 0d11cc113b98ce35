#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

/// Runs a spec that trains two steps and exports; what its results say of the export.
nlohmann::json exported(const std::string& task, const std::string& model) {
  const Folder folder;
  const auto spec =
      folder.write("x.json", R"({"name": "x", "seed": 3, "task": )" + task + R"(, "model": )" + model + R"(, "stages": [
    {"train": {"steps": 2, "batch": {"max_tokens": 256}, "log_every": 1}},
    {"export": {"compare": 50, "search": {"beam": 2, "max_length": 12}}}]})");
  const auto run =
      run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--json", "--threads", "1"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  return nlohmann::json::parse(run.out).at("stages").at("export");
}

void answers_alike(const nlohmann::json& result) {
  INFO(result.dump(2));
  CHECK(result.at("compared") > 30);
  CHECK(result.at("different") == 0);
  CHECK(result.at("different_in_cpp") == 0);
  if (!python().empty()) CHECK(result.at("different_in_python") == 0);
}

const std::string stack = R"("d_model": 16, "decoder": {"layers": 2, "attention": {"heads": 2}})";
const std::string both_stacks = R"("d_model": 16, "encoder": {"layers": 1, "attention": {"heads": 2}},
                                   "decoder": {"layers": 1, "attention": {"heads": 2}, "cross_attention": {"heads": 2}})";

}  // namespace

TEST_CASE("an exported model of reversed texts answers as the run does, in C++ and Python", "[run][python]") {
  const auto result =
      exported(R"({"type": "generated", "exercise": {"type": "reverse"}, "train": 200, "valid": 50, "test": 60})",
               R"({"type": "encoder_decoder", )" + both_stacks + "}");
  answers_alike(result);
  CHECK(result.at("text") == "the file was exported without tokenizers");
}

TEST_CASE("an exported language model answers as the run does, in C++ and Python", "[run][python]") {
  answers_alike(exported(
      R"({"type": "language_model", "data": {"type": "grammar", "train": 200, "valid": 60, "test": 60}, "units": "characters", "block": 24})",
      R"({"type": "decoder_only", )" + stack + "}"));
}

TEST_CASE("an exported transcriber writes what the run does, by a decoder and by CTC, in C++ and Python",
          "[run][python]") {
  const std::string task =
      R"({"type": "transcription", "data": {"type": "phones", "phones": 5, "width": 6, "train": 200, "valid": 60, "test": 60}})";
  for (
      const std::string model :
      {R"({"type": "frame_transcriber", "d_model": 16, "frame_width": 6})",
       R"({"type": "frame_ctc", "d_model": 16, "frame_width": 6, "encoder": {"type": "layers", "attention": {"heads": 2}}})"}) {
    const auto result = exported(task, model);
    answers_alike(result);
    CHECK(result.at("text") == "this file takes frames and gives ids");
  }
}

TEST_CASE("an exported tagger answers as the run does, in C++ and Python", "[run][python]") {
  answers_alike(exported(
      R"({"type": "tagging", "data": {"type": "grammar", "train": 200, "valid": 60, "test": 60}, "tokenizer": {"type": "bpe", "vocabulary": 300}})",
      R"({"type": "decoder_only", "output": "tags", )" + stack + "}"));
}

TEST_CASE("an exported model of spans answers as the run does, in C++ and Python", "[run][python]") {
  answers_alike(exported(
      R"({"type": "span", "data": {"type": "grammar", "train": 200, "valid": 60, "test": 60}, "tokenizer": {"type": "word"}})",
      R"({"type": "encoder_only", "d_model": 16, "output": "spans", "encoder": {"layers": 1, "attention": {"heads": 2}}})"));
}

TEST_CASE("an exported classifier answers as the run does, in C++ and Python", "[run][python]") {
  answers_alike(exported(
      R"({"type": "generated", "exercise": {"type": "sentiment"}, "train": 200, "valid": 50, "test": 60})",
      R"({"type": "encoder_only", "d_model": 16, "output": "classes", "encoder": {"layers": 1, "attention": {"heads": 2}}})"));
}
