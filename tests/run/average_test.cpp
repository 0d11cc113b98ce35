
#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"
#include "src/run/spec.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

std::string train_with(const std::string& more) {
  return R"({"train": {"steps": 8, "batch": {"max_tokens": 300}, "log_every": 2, "schedule": {"type": "constant", "peak": 0.003})" +
         more + "}}";
}

/// The mistakes of a spec with these stages; empty: none.
std::string mistakes(const std::string& stages) {
  Folder folder;
  const auto spec = folder.write("x.json", tiny_spec(stages));
  try {
    load_spec(spec.string(), {});
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("an average stage leaves the mean of a training's last checkpoints", "[run]") {
  Folder folder;
  const auto spec = folder.write(
      "x.json", tiny_spec("[" + train_with(R"(, "checkpoint_every": 2, "keep_checkpoints": 3)") +
                          R"(, {"average": {"model": "train", "last": 3}}, {"evaluate": {"metrics": ["loss"]}}])"));
  const auto run = run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--json"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto results = nlohmann::json::parse(run.out);
  CHECK(results.at("stages").at("average").at("steps") == nlohmann::json{4, 6, 8});
  const auto checkpoints = only_run(folder.path() / "runs", "tiny") / "checkpoints";
  const auto mean = load_checkpoint(checkpoints / "average" / "final").model;
  std::vector<TensorMap> parts;
  for (const int step : {4, 6, 8})
    parts.push_back(load_checkpoint(checkpoints / "train" / checkpoint_name(step)).model);
  REQUIRE(mean.size() == parts[0].size());
  for (const auto& [name, tensor] : mean) {
    INFO(name);
    auto sum = torch::zeros(tensor.sizes(), torch::kFloat64);
    for (const auto& part : parts) sum += part.at(name).to(torch::kFloat64);
    CHECK((tensor.to(torch::kFloat64) - sum / 3).abs().max().item<double>() < 1e-7);
  }
  CHECK(run_program({"show", only_run(folder.path() / "runs", "tiny").string(), "--stage", "average"}).code == 0);
}

TEST_CASE("an average of checkpoints that will not be there is a mistake of the spec", "[run]") {
  const auto average = [](const std::string& options) { return ", {\"average\": {" + options + "}}]"; };
  CHECK(mistakes("[" + train_with(R"(, "checkpoint_every": 2, "keep_checkpoints": 4)") +
                 average(R"("model": "train", "last": 4)"))
            .empty());
  CHECK_THAT(
      mistakes("[" + train_with(R"(, "checkpoint_every": 2)") + average(R"("model": "train", "last": 3)")),
      ContainsSubstring(
          "average.last: expected at most the keep_checkpoints of \"train\" (2), got 3; raise keep_checkpoints"));
  CHECK_THAT(mistakes("[" + train_with(R"(, "checkpoint_every": 3, "keep_checkpoints": 9)") +
                      average(R"("model": "train", "last": 4)")),
             ContainsSubstring("average.last: expected at most the checkpoints that \"train\" makes (3), got 4; lower "
                               "its checkpoint_every"));
  CHECK_THAT(mistakes("[" + train_with("") + R"(, {"evaluate": {"metrics": ["loss"]}})" +
                      average(R"("model": "evaluate", "last": 1)")),
             ContainsSubstring(
                 "average.model: expected the name of a train stage, got \"evaluate\", which is of type evaluate"));
  CHECK_THAT(mistakes("[" + train_with("") + average(R"("model": "tran")")),
             ContainsSubstring("no earlier stage is called \"tran\""));
  CHECK_THAT(mistakes("[" + train_with("") + average(R"("model": "initial")")),
             ContainsSubstring("expected the name of a train stage, got \"initial\""));
  CHECK_THAT(mistakes("[" + train_with("") + average("")), ContainsSubstring("average.model: required"));
}

TEST_CASE("early stopping says where it stopped and which step is left", "[run]") {
  Folder folder;
  // A learning rate that throws the model about: no validation after the first few is better.
  const auto spec = folder.write(
      "x.json", tiny_spec(R"([{"train": {"steps": 60, "batch": {"max_tokens": 200}, "log_every": 2, "validate_every": 2,
    "schedule": {"type": "constant", "peak": 0.3}, "early_stopping": {"patience": 3},
    "penalties": [{"type": "l2", "coefficient": 0.0001}], "augment": [{"type": "word_dropout", "rate": 0.1}, {"type": "back_copy", "rate": 0.1}]}},
    {"evaluate": {"metrics": ["loss"], "split": "valid"}}])"));
  const auto run = run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--json"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto stages = nlohmann::json::parse(run.out).at("stages");
  const auto& train = stages.at("train");
  CHECK(train.at("stopped_at").get<int64_t>() == train.at("best_step").get<int64_t>() + 6);
  CHECK(train.at("stopped_at") == train.at("steps"));
  // The model that is left is the best one: it is measured again.
  CHECK(stages.at("evaluate").at("metrics").at("loss").get<double>() ==
        Approx(train.at("valid").at("loss").get<double>()).epsilon(1e-9));
}
