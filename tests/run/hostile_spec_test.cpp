// Specs of real runs, edited at random with the words of the schema: whatever comes of it is a run or a list of
// mistakes.
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "src/run/spec.h"
#include "src/spec/dump.h"
#include "src/spec/mistakes.h"
#include "src/spec/override.h"
#include "src/spec/reader.h"
#include "src/spec/schema.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tools/fuzz/targets.h"

using namespace headlab;

namespace {

/// Every key and every name that specs can hold, as JSON.
std::vector<std::string> words_of_schema() {
  std::set<std::string> words{"0",    "1",  "2",  "3",   "0.5",     "-1",           "null",
                              "true", "[]", "{}", "[0]", "[1,2,3]", "1000000000000"};
  const std::function<void(const nlohmann::ordered_json&)> collect = [&](const nlohmann::ordered_json& value) {
    if (value.is_object()) {
      if (value.contains("properties"))
        for (const auto& [key, field] : value["properties"].items()) words.insert(nlohmann::json(key).dump());
      for (const auto& [key, field] : value.items()) collect(field);
    } else if (value.is_array()) {
      for (const auto& item : value) collect(item);
    } else if (value.is_string() && value.get<std::string>().size() < 24) {
      words.insert(value.dump());
    }
  };
  collect(schema(RunSpec(), "spec"));
  return {words.begin(), words.end()};
}

}  // namespace

TEST_CASE("a real spec, however it is changed, is read to options that can be written again, or refused with places",
          "[fuzz]") {
  const auto words = words_of_schema();
  CHECK(words.size() > 150);
  std::vector<std::string> pool;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::in_source("experiments")))
    if (entry.path().extension() == ".json") pool.push_back(read_file(entry.path()));
  pool.push_back(
      R"({"name": "x", "model": {"type": "encoder_decoder", "d_model": 8, "encoder": {"attention": {"heads": 4, "gates": ["scalar"]}}},
      "stages": ["train", {"score": {"name": "s"}}, {"prune": {"scores": "s", "select": {"fraction": 0.5}}}, {"evaluate": {"name": "e"}}],
      "expect": [{"claim": "c", "that": "e.loss", "below": 3}]})");
  const char* wanted = std::getenv("HEADLAB_FUZZ_RUNS");
  const auto runs = wanted ? std::strtoull(wanted, nullptr, 10) : 1500;
  Random random(3);
  unsigned long long accepted = 0, refused = 0;
  for (unsigned long long run = 0; run < runs; ++run) {
    auto text = pool[static_cast<std::size_t>(random.below(pool.size()))];
    for (auto edits = 1 + random.below(3); edits > 0; --edits) text = fuzz::mutate_json(text, words, random);
    INFO(text);
    std::string message;
    try {
      RunSpec spec;
      read_or_throw(Document::parse_text(text, "x.json"), spec);
      const auto dumped = dump_text(spec);
      RunSpec again;
      read_or_throw(Document::parse_text(dumped, "x.json"), again);
      if (dump_text(again) != dumped) FAIL("the dump reads back to another: " << dumped);
      ++accepted;
    } catch (const SpecErrors& errors) {
      fuzz::check_message("spec", errors.what());
      if (std::string(errors.what()).rfind("x.json:", 0) != 0) FAIL(errors.what());
      ++refused;
    } catch (const std::exception& error) {
      FAIL("another exception than a list of mistakes: " << error.what());
    }
  }
  CHECK(accepted > runs / 100);
  CHECK(refused > runs / 10);
}
