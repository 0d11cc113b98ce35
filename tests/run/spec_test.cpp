#include <filesystem>

#include "src/run/spec.h"
#include "src/spec/mistakes.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

std::string message_of(const std::string& text) {
  Folder folder;
  const auto path = folder.write("x.json", text).string();
  try {
    load_spec(path, {});
  } catch (const UsageError& error) {
    std::string message = error.what();
    for (auto at = message.find(path); at != std::string::npos; at = message.find(path)) message.replace(at, path.size(), "x.json");
    return message;
  }
  return "no mistake";
}

std::string model_spec(const std::string& model, const std::string& stages = R"(["evaluate"])") {
  return "{\"name\": \"x\",\n\"model\": " + model + ",\n\"stages\": " + stages + "}";
}

}  // namespace

TEST_CASE("every spec of experiments/ is sound") {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(HEADLAB_SOURCE_DIR) / "experiments")) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path());
    CHECK_NOTHROW(load_spec(entry.path().string(), {}, /*find_files=*/false));
    ++count;
  }
  CHECK(count >= 2);
}

TEST_CASE("wrong specs of real runs get these messages, word for word") {
  struct Row {
    std::string text, message;
  };
  const std::vector<Row> rows{
      {model_spec(R"({"type": "encoder_decoder", "encoder": {"attention": {"headz": 4}}})"),
       "x.json:2:62: model.encoder.attention.headz: unknown key; did you mean \"heads\"? (accepted: type, heads, head_width, project, "
       "then, position, weigh, gates, mix)\n1 mistake, nothing was run"},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(message_of(row.text) == row.message);
  }
}
