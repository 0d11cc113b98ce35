#include "src/report/event_file.h"

#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/places.h"
#include "tests/support/program.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"

using namespace headlab;

namespace {

const char* const no_python =
    "no Python with tensorboard: set HEADLAB_PYTHON to one, or let tools/test make .deps/venv";

/// What TensorBoard's reader finds in a folder.
nlohmann::json read_by_tensorboard(const std::filesystem::path& folder) {
  test::Running python({test::python(), test::in_source("tests/report/read_events.py"), folder.string()});
  const auto done = python.wait();
  INFO(done.err);
  REQUIRE(done.code == 0);
  return nlohmann::json::parse(done.out);
}

}  // namespace

TEST_CASE("records are guarded by the masked CRC-32C of their bytes") {
  const auto mask = [](uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; };
  CHECK(masked_crc32c("123456789") == mask(0xe3069283u));            // the check value of CRC-32C
  CHECK(masked_crc32c(std::string(32, '\0')) == mask(0x8a9136aau));  // RFC 3720, B.4
  CHECK(masked_crc32c("") == mask(0));
}

TEST_CASE("TensorBoard's own reader finds scalars, histograms and texts as they were written") {
  if (test::skipped(test::python().empty(), no_python)) return;
  Scratch scratch;
  {
    EventFile events(scratch / "events.out.tfevents.headlab", 1000.0);
    events.scalar("base/loss", 0, 2.5, 1001.0);
    events.scalar("base/loss", 50, -0.25, 1002.0);
    events.scalar("base/loss", 5'000'000'000, 1e-3, 1003.0);
    events.histogram("importance/heads", 0, {1, 2, 2.5, std::nan(""), 5}, 1003.0, 4);
    events.histogram("one/heads", 0, {3, 3}, 1003.0);
    events.histogram("none/heads", 0, {std::nan("")}, 1003.0);
    events.text("spec", 0, "**größer** | \"a\"\n", 1004.0);
  }
  const auto read = read_by_tensorboard(scratch.path);
  CHECK(read["scalars"]["base/loss"][0] == nlohmann::json{0, 2.5});
  CHECK(read["scalars"]["base/loss"][1] == nlohmann::json{50, -0.25});
  CHECK(read["scalars"]["base/loss"][2][0] == 5'000'000'000);
  CHECK(read["scalars"]["base/loss"][2][1].get<double>() == Approx(1e-3));
  const auto& histogram = read["histograms"]["importance/heads"];
  CHECK(histogram["min"] == 1.0);
  CHECK(histogram["max"] == 5.0);
  CHECK(histogram["num"] == 4.0);
  CHECK(histogram["sum"] == 10.5);
  CHECK(histogram["sum_squares"] == 1 + 4 + 6.25 + 25);
  CHECK(histogram["limits"] == nlohmann::json{2.0, 3.0, 4.0, 5.0});
  CHECK(histogram["counts"] == nlohmann::json{1.0, 2.0, 0.0, 1.0});
  CHECK(read["histograms"]["one/heads"]["counts"] == nlohmann::json{2.0});
  CHECK(!read["histograms"].contains("none/heads"));
  CHECK(read["texts"]["spec"] == "**größer** | \"a\"\n");
}

TEST_CASE(
    "a run's folder is read by TensorBoard: training, scores of heads, samples and the spec; a run that went on has "
    "each step once") {
  if (test::skipped(test::python().empty(), no_python)) return;
  const test::Folder folder;
  const auto spec = folder.write(
      "x.json",
      test::tiny_spec(
          R"([{"train": {"name": "base", "steps": 4, "batch": {"max_tokens": 200}, "log_every": 2, "validate_every": 2}},
      {"score": {"name": "importance", "scorer": "norm"}}, {"evaluate": {"name": "full", "metrics": ["loss", "bleu"], "samples": 2}}])"));
  const auto out = (folder.path() / "runs").string();
  for (int again = 0; again < 2; ++again) {
    const auto done = test::run_program({"run", spec.string(), "--out", out, "--threads", "1", "--quiet"});
    INFO(done.err);
    REQUIRE(done.code == 0);
    const auto run = test::only_run(out, "tiny");
    const auto read = read_by_tensorboard(run);
    REQUIRE(read["scalars"]["base/loss"].size() == 2);
    std::istringstream rows(read_file(run / "metrics.jsonl"));
    std::size_t i = 0;
    for (std::string line; std::getline(rows, line); ++i) {
      const auto row = nlohmann::json::parse(line);
      for (const auto* key : {"loss", "lr", "grad_norm"}) {
        CHECK(read["scalars"]["base/" + std::string(key)][i][0] == row["step"]);
        CHECK(read["scalars"]["base/" + std::string(key)][i][1].get<double>() == Approx(row[key].get<double>()));
      }
    }
    CHECK(read["scalars"].contains("base/valid/loss"));
    CHECK(read["scalars"].contains("full/bleu"));
    CHECK(read["histograms"]["importance/heads"]["num"].get<double>() > 5);
    CHECK_THAT(read["texts"]["full/samples"].get<std::string>(),
               ContainsSubstring("| source | reference | hypothesis |"));
    CHECK_THAT(read["texts"]["spec"].get<std::string>(), ContainsSubstring("\"encoder_decoder\""));
    CHECK_THAT(read["texts"]["run"].get<std::string>(), ContainsSubstring("headlab run"));
  }
}
