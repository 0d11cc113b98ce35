// Pruning as a user does it: again, of everything, of nothing, of what is not there.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

struct Done {
  int code;
  std::string err;
  nlohmann::json stages;
};

Done run(const Folder& folder, const std::string& stages) {
  static int number = 0;
  const auto out = folder.path() / ("runs" + std::to_string(number++));
  const auto spec = folder.write("x.json", tiny_spec(stages));
  const auto done = run_program({"run", spec.string(), "--out", out.string(), "--threads", "1", "--quiet"});
  if (done.code != 0) return {done.code, done.err, {}};
  return {0, done.err, nlohmann::json::parse(headlab::read_file(only_run(out, "tiny") / "results.json"))["stages"]};
}

double loss_of(const nlohmann::json& stages) { return stages["evaluate"]["metrics"]["loss"].get<double>(); }

}  // namespace

TEST_CASE("a model pruned twice by original names is the one pruned once, and the masked one", "[run][prune]") {
  const Folder folder;
  const auto evaluate = R"({"evaluate": {"metrics": ["loss"]}})";
  const auto twice = run(
      folder,
      R"([{"prune": {"heads": ["enc.self.0.1"]}}, {"prune": {"name": "more", "heads": ["enc.self.0.3", "dec.cross.0.0"]}}, )" +
          std::string(evaluate) + "]");
  const auto once = run(folder, R"([{"prune": {"heads": ["dec.cross.0.0", "enc.self.0.3", "enc.self.0.1"]}}, )" +
                                    std::string(evaluate) + "]");
  const auto masked = run(folder, R"([{"mask": {"heads": ["dec.cross.0.0", "enc.self.0.3", "enc.self.0.1"]}}, )" +
                                      std::string(evaluate) + "]");
  for (const auto* one : {&twice, &once, &masked}) {
    INFO(one->err);
    REQUIRE(one->code == 0);
  }
  CHECK(loss_of(twice.stages) == loss_of(once.stages));
  CHECK(std::abs(loss_of(twice.stages) - loss_of(masked.stages)) < 1e-5);
  CHECK(twice.stages["more"]["heads_before"] == 9);
  CHECK(twice.stages["more"]["heads_after"] == 7);
  CHECK(twice.stages["more"]["kept"] == once.stages["prune"]["kept"]);
}

TEST_CASE(
    "everything and nothing can be pruned: the one leaves what masks of all heads leave, the other the model as it was",
    "[run][prune]") {
  const Folder folder;
  const auto pruned = [&](const std::string& kind, const std::string& fraction) {
    const auto done = run(folder, R"([{"score": {"scorer": "norm"}}, {")" + kind +
                                      R"(": {"scores": "score", "select": {"fraction": )" + fraction +
                                      R"(}}}, {"evaluate": {"metrics": ["loss"]}}])");
    INFO(done.err);
    REQUIRE(done.code == 0);
    return done.stages;
  };
  const auto nothing = pruned("prune", "0"), everything = pruned("prune", "1"), masked = pruned("mask", "1");
  const auto before = run(folder, R"([{"evaluate": {"metrics": ["loss"]}}])");
  CHECK(nothing["prune"]["removed"].empty());
  CHECK(nothing["prune"]["heads_after"] == 10);
  CHECK(loss_of(nothing) == loss_of(before.stages));
  CHECK(everything["prune"]["heads_after"] == 0);
  CHECK(everything["prune"]["parameters_after"].get<int64_t>() <
        everything["prune"]["parameters_before"].get<int64_t>());
  CHECK(everything["prune"]["flops_after"].get<int64_t>() < everything["prune"]["flops_before"].get<int64_t>());
  CHECK(everything["prune"]["seconds_after"].get<double>() > 0);
  CHECK(std::abs(loss_of(everything) - loss_of(masked)) < 1e-5);
}

TEST_CASE("what was masked before is removed with what is pruned: it does not come back", "[run][prune]") {
  const Folder folder;
  const auto evaluate = R"({"evaluate": {"metrics": ["loss"]}})";
  const auto both = run(folder, R"([{"mask": {"heads": ["enc.self.0.1"]}}, {"prune": {"heads": ["enc.self.0.3"]}}, )" +
                                    std::string(evaluate) + "]");
  const auto masked =
      run(folder, R"([{"mask": {"heads": ["enc.self.0.3", "enc.self.0.1"]}}, )" + std::string(evaluate) + "]");
  REQUIRE(both.code == 0);
  CHECK(both.stages["prune"]["removed"] == nlohmann::json({"enc.self.0.1", "enc.self.0.3"}));
  CHECK(std::abs(loss_of(both.stages) - loss_of(masked.stages)) < 1e-5);
}

TEST_CASE("heads that are not there, and scores of another model, are refused by name", "[run][prune]") {
  const Folder folder;
  const auto gone = run(
      folder, R"([{"prune": {"heads": ["enc.self.0.1"]}}, {"prune": {"name": "again", "heads": ["enc.self.0.1"]}}])");
  CHECK(gone.code == 2);
  CHECK_THAT(gone.err, ContainsSubstring("enc.self.0.1"));
  CHECK_THAT(gone.err, ContainsSubstring("enc.self.0 has heads 0, 2, 3"));
  const auto never = run(folder, R"([{"prune": {"heads": ["enc.self.5.0"]}}])");
  CHECK(never.code == 2);
  CHECK_THAT(never.err, ContainsSubstring("enc.self.5.0"));
  const auto no_head = run(folder, R"([{"prune": {"heads": ["enc.sefl.0.1"]}}])");
  CHECK(no_head.code == 2);
  CHECK_THAT(no_head.err, ContainsSubstring("enc.sefl.0.1"));
  folder.write("other.json",
               R"({"method": "gradient", "of": "train", "heads": {"enc.self.0.0": 0.5, "enc.self.7.0": 0.1}})");
  const auto other = run(folder, R"([{"prune": {"scores_file": "other.json", "select": {"count": 1}}}])");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, ContainsSubstring("other"));
}
