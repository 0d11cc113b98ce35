#pragma once

#include <map>
#include <string>

#include "src/run/context.h"
#include "src/run/spec.h"

namespace headlab {

/// One step of a run. It reads what earlier stages left in the context and returns what results.json says of it; a
/// stage whose result is there already is not run again, so all that others need of it must be in files by then.
struct Stage {
  virtual ~Stage() = default;
  virtual nlohmann::ordered_json run(RunContext& context) = 0;
};

using Stages = Registry<Stage>;
const Stages& stages();

/// The stages before one, by name; each lives as long as the spec.
using EarlierStages = std::map<std::string, const Choice*>;

/// Options of a stage with rules about other stages.
struct StageRules {
  virtual ~StageRules() = default;
  virtual void stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const = 0;
};

/// Names are unique and refer to earlier stages. `known`: those from outside.
void check_stages(const Choices& stages, const std::string& path, EarlierStages known, Problems& problems);

/// Runs stages in order, skipping those with results; the context holds the results.
void run_stages(const Choices& stages, RunContext& context);

}  // namespace headlab
