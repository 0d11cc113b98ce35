#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

TEST_CASE("heads of a transcriber are scored, ablated, masked along a curve, measured and pruned by a run",
          "[run][paper-23]") {
  for (const std::string merge : {"head", "decoder"}) {
    const Folder folder;
    const auto spec = folder.write("x.json", R"({"name": "x", "seed": 3,
      "task": {"type": "transcription", "data": {"type": "phones", "phones": 5, "width": 6, "symbols": {"min": 3, "max": 4}, "train": 200, "valid": 30, "test": 30}},
      "model": {"type": "frame_transcriber", "d_model": 16, "frame_width": 6, "max_length": 64, "merge": ")" +
                                                 merge + R"(", "ctc": 0.2},
      "stages": [
        {"train": {"steps": 3, "batch": {"max_tokens": 256}, "log_every": 1, "head_masks": [{"type": "dropout", "rate": 0.3}]}},
        {"score": {"scorer": "gradient"}},
        {"score": {"name": "confidence", "scorer": "confidence", "against": ["score"]}},
        {"ablate": {"metric": "loss", "random": {"sets": 1, "size": 2}}},
        {"ablate": {"name": "means", "metric": "loss", "replace": {"with": "mean", "limit": 20}}},
        {"ablate": {"name": "drawn", "metric": "token_error_rate", "each_head": false, "replace": {"with": "resample", "limit": 20},
                    "sets": [{"name": "both", "heads": ["dec.cross.0.0", "dec.cross.0.3"]}], "evaluate": {"search": {"beam": 2, "max_length": 6}}}},
        {"curve": {"scores": "score", "metric": "loss", "fractions": [0.0, 0.5], "random_sets": 1}},
        {"measure": {"name": "looks", "what": "attention"}},
        {"measure": {"name": "reach", "what": "support"}},
        {"measure": {"name": "alike", "what": {"type": "likeness", "on": "weights"}}},
        {"prune": {"scores": "score", "select": {"fraction": 0.5}}},
        {"evaluate": {"name": "left", "split": "valid", "metrics": ["loss", "accuracy", "token_error_rate"], "search": {"beam": 3, "max_length": 6}}},
        {"prune": {"name": "none", "heads": ["dec.cross.0.0", "dec.cross.0.1", "dec.cross.0.2", "dec.cross.0.3"], "model": "train"}},
        {"evaluate": {"name": "nothing", "split": "valid", "metrics": ["loss"]}}]})");
    const auto run =
        run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--json", "--threads", "1"});
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    const auto stages = nlohmann::json::parse(run.out).at("stages");
    CHECK(stages.at("ablate").at("count") == 4);
    CHECK(stages.at("score").at("heads").size() == 4);
    CHECK(stages.at("prune").at("removed").size() == 2);
    // Half of the heads masked along the curve are those that were pruned.
    CHECK(stages.at("curve").at("points")[1].at("value").get<double>() ==
          Approx(stages.at("left").at("metrics").at("loss").get<double>()).epsilon(1e-5));
    CHECK(stages.at("curve").at("points")[0].at("value").get<double>() ==
          Approx(stages.at("ablate").at("baseline").get<double>()).epsilon(1e-6));
  }
}
