// `headlab unroll`: the settings of an arm that make a model one of one head a layer (2106.09650).
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

const std::string spec = R"({"name": "wide", "task": {"type": "generated", "exercise": "recall"},
    "model": {"type": "decoder_only", "d_model": 64, "decoder": {"layers": 2, "attention": {"heads": 4}}},
    "stages": [{"evaluate": {}}]})";

}  // namespace

TEST_CASE("unroll prints an arm's settings, and with them the spec is one of one head a layer", "[cli][paper-41]") {
  Folder folder;
  const auto file = folder.write("wide.json", spec).string();
  const auto run = run_program({"unroll", file, "--set", "model.decoder.feed_forward.width=128"});
  REQUIRE(run.code == 0);
  const auto settings = nlohmann::json::parse(run.out);
  CHECK(settings == nlohmann::json({{"model.decoder.layers", 8},
                                    {"model.decoder.attention.heads", 1},
                                    {"model.decoder.attention.head_width", 16},
                                    {"model.decoder.feed_forward.width", 32}}));
  auto arms = nlohmann::json::parse(spec);
  arms["arms"] = {{"wide", nlohmann::json::object()}, {"deep", settings}};
  CHECK(run_program({"check", folder.write("arms.json", arms.dump()).string()}).code == 0);
}

TEST_CASE("unroll says what can't be cut into heads", "[cli][paper-41]") {
  Folder folder;
  const auto run =
      run_program({"unroll", folder.write("wide.json", spec).string(), "--set", "model.decoder.mixer=ngram"});
  CHECK(run.code == 2);
  CHECK_THAT(run.err, ContainsSubstring("unroll: model.decoder.mixer: expected the mixer attention, got ngram"));
}
