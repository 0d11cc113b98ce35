#pragma once

#include <nlohmann/json.hpp>

#include "modules/base/fields.h"
#include "modules/model/model.h"
#include "src/spec/compare.h"
#include "src/spec/document.h"
#include "src/task/task.h"

namespace headlab {

const Catalogue& stage_catalogue();

/// A task beside the spec's own, of the same vocabularies: to learn from first, to hold on to, to be measured on.
struct NamedTask : Described<NamedTask> {
  std::string name;
  Choice task{task_catalogue, "translation"};
  void describe(Fields& fields) override;
};

/// What a run does: a spec, read.
struct RunSpec : Described<RunSpec> {
  std::string name, question, paper;
  int64_t seed = 1;
  std::string device = "cpu";
  std::string precision = "float32";
  Choice task{task_catalogue, "translation"};
  std::vector<NamedTask> tasks;
  Choice model{model_catalogue, "encoder_decoder"};
  Choices stages{stage_catalogue, true, {}};
  nlohmann::ordered_json sweep, arms;
  std::vector<int64_t> seeds;
  std::vector<ExpectOptions> expect;
  std::vector<CompareOptions> compare;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// What every stage has.
struct StageCommon {
  std::string name;   // what results, other stages and claims call it
  std::string model;  // the stage whose model it starts from
  std::string task;   // one of the spec's tasks; empty: its task
  void describe_common(Fields& fields, const std::string& type);
};

/// The name of a stage: its own, or its type.
std::string stage_name(const Choice& stage);
const StageCommon& common_of(const Choice& stage);

/// One run of a spec: all but the sweep's keys fixed.
struct RunVariant {
  std::string label;  // "layers=2, seed=1"; empty where there is no sweep
  std::shared_ptr<RunSpec> spec;
  std::string arm;    // of an experiment with arms
  std::string group;  // the label without the seed
};

/// Reads a spec with its overrides and its sweep; everything that can be known before a run is checked, files included.
/// Throws SpecErrors with every mistake. Nothing is allocated or written. `find_files`: the files it names must be
/// there.
std::vector<RunVariant> load_spec(const std::string& path, const std::vector<std::string>& overrides,
                                  bool find_files = true);

}  // namespace headlab
