#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"

using namespace headlab::test;

TEST_CASE("a validator of JSON Schemas accepts every spec of experiments, and refuses wrong ones", "[cli][spec]") {
  if (skipped(python().empty(),
              "no Python with jsonschema: set HEADLAB_PYTHON to one, or let tools/test make .deps/venv"))
    return;
  const Folder folder;
  const auto printed = run_program({"schema"});
  REQUIRE(printed.code == 0);
  std::vector<std::string> command{python(), in_source("tests/spec/validate.py"),
                                   folder.write("schema.json", printed.out).string()};
  std::size_t right = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(in_source("experiments")))
    if (entry.path().extension() == ".json") {
      command.push_back(entry.path().string());
      ++right;
    }
  const std::vector<std::string> wrong{
      R"({"name": "x", "model": {"type": "encoder_decoder", "d_modl": 3}, "stages": ["evaluate"]})",
      R"({"name": "x", "model": {"type": "encoder_decoder", "d_model": "wide"}, "stages": ["evaluate"]})",
      R"({"name": "x", "stages": [{"train": {"steps": "many"}}]})",
      R"({"name": "x", "stages": [{"prune": {"random": true, "select": {"fraction": 1.5}}}]})",
      R"({"name": "x", "stages": ["evaluat"]})",
      R"({"stages": ["evaluate"]})",
      R"({"name": "x", "model": {"type": "encoder_decoder", "encoder": {"attention": {"gates": ["hard_concret"]}}}, "stages": ["evaluate"]})",
  };
  for (std::size_t i = 0; i < wrong.size(); ++i)
    command.push_back(folder.write("wrong" + std::to_string(i) + ".json", wrong[i]).string());
  Running validator(command);
  const auto done = validator.wait();
  INFO(done.err);
  REQUIRE(done.code == 0);
  CHECK(right > 30);
  const auto said = nlohmann::json::parse(done.out);
  for (const auto& [spec, complaint] : said.items()) {
    INFO(spec << ": " << complaint);
    CHECK(complaint.is_null() == (spec.find(folder.path().string()) == std::string::npos));
  }
}
