#include <cstdio>

#include "modules/base/error.h"
#include "modules/model/unroll.h"
#include "src/cli/command.h"
#include "src/run/spec.h"
#include "src/spec/dump.h"
#include "src/spec/path.h"

namespace headlab {
namespace {

/// Adds {key: value} for each value of `after` that `before` has otherwise; lists as wholes.
void add_changes(const std::string& path, const nlohmann::ordered_json& before, const nlohmann::ordered_json& after,
                 nlohmann::ordered_json& changes) {
  if (before == after) return;
  if (!before.is_object() || !after.is_object()) {
    changes[path] = after;
    return;
  }
  for (const auto& [key, value] : after.items())
    add_changes(key_path(path, key), before.contains(key) ? before.at(key) : nlohmann::ordered_json(), value, changes);
}

}  // namespace

std::function<int()> add_unroll(CLI::App& command) {
  struct Wanted {
    std::string spec;
    std::vector<std::string> set;
  };
  auto wanted = std::make_shared<Wanted>();
  command.add_option("spec", wanted->spec, "a spec; of a sweep or arms the first run counts")->required();
  command.add_option("--set", wanted->set, "a value to set before: --set model.decoder.layers=2; may be repeated")
      ->take_all();
  return [wanted] {
    const auto runs = load_spec(wanted->spec, wanted->set, /*find_files=*/false);
    const auto& model = runs.front().spec->model;
    auto deep = model;
    Problems problems;
    unroll_heads(deep, problems);
    if (!problems.found.empty())
      throw UsageError("unroll: model." + problems.found.front().field + ": " + problems.found.front().message);
    auto changes = nlohmann::ordered_json::object();
    add_changes("model", dump(model), dump(deep), changes);
    std::printf("%s\n", changes.dump(2).c_str());
    return 0;
  };
}

}  // namespace headlab
