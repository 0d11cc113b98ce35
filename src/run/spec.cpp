#include "src/run/spec.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "modules/base/nearest.h"
#include "src/data/paths.h"
#include "src/run/stage.h"
#include "src/spec/dump.h"
#include "src/spec/mistakes.h"
#include "src/spec/override.h"
#include "src/spec/path.h"
#include "src/spec/reader.h"
#include "src/spec/sweep.h"

namespace headlab {
namespace {

using Visit = std::function<void(const Field& field, const std::string& path, const std::string& text)>;

void visit_texts(Options& options, const std::string& path, const Visit& visit);

void visit_texts(Choices& choices, const std::string& path, const Visit& visit) {
  for (std::size_t i = 0; i < choices.items.size(); ++i) {
    auto& item = choices.items[i];
    const auto place = item_path(path, i);
    visit_texts(item.options(), choices.keyed ? key_path(place, item.type()) : place, visit);
  }
}

// Calls `visit` for each text of each string field, absent and empty ones left out, with its path.
void visit_texts(Options& options, const std::string& path, const Visit& visit) {
  Fields fields;
  options.describe(fields);
  for (const auto& field : fields.all()) {
    const auto here = key_path(path, field.name);
    if (auto* const* nested = std::get_if<Options*>(&field.value)) visit_texts(**nested, here, visit);
    if (auto* const* choice = std::get_if<Choice*>(&field.value)) visit_texts((*choice)->options(), here, visit);
    if (auto* const* choices = std::get_if<Choices*>(&field.value)) visit_texts(**choices, here, visit);
    if (auto* list = std::get_if<OptionsList>(&field.value))
      for (std::size_t i = 0; i < list->size(); ++i) visit_texts(list->at(i), item_path(here, i), visit);
    if (auto* const* text = std::get_if<std::string*>(&field.value); text && !(*text)->empty())
      visit(field, here, **text);
    if (auto* const* text = std::get_if<std::optional<std::string>*>(&field.value); text && **text)
      visit(field, here, ***text);
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&field.value))
      for (std::size_t i = 0; i < (*list)->size(); ++i) visit(field, item_path(here, i), (**list)[i]);
  }
}

// Every metric that a stage names must be one of its task's. `tasks`: by name, the spec's own by "".
void metric_rules(Choices stages, const std::string& path, const std::map<std::string, const Choice*>& tasks,
                  Problems& problems) {
  for (std::size_t i = 0; i < stages.items.size(); ++i) {
    auto& stage = stages.items[i];
    const auto place = item_path(path, i) + "." + stage.type();
    Fields fields;
    stage.options().describe(fields);
    for (const auto& field : fields.all())  // a stage of stages: each has a task of its own
      if (auto* const* inner = std::get_if<Choices*>(&field.value); inner && (*inner)->keyed)
        metric_rules(**inner, key_path(place, field.name), tasks, problems);
    const auto found = tasks.find(common_of(stage).task);
    const auto* rules = found == tasks.end() ? nullptr : dynamic_cast<const TaskRules*>(&found->second->options());
    if (!rules) continue;
    const auto metrics = rules->metrics();
    visit_texts(stage.options(), place, [&](const Field& field, const std::string& at, const std::string& metric) {
      if (field.is_metric && !metrics.has(metric) && at.find(".stages[", place.size()) == std::string::npos)
        problems.add(at, "the task " + found->second->type() + " has no metric " + in_quotes(metric) +
                             did_you_mean(metric, metrics.all) + " (it has: " + listed(metrics.all) + ")");
    });
  }
}

// Every role that a head of the model has must be told by one of the tasks.
void role_rules(Choice model, const std::map<std::string, const Choice*>& tasks, Problems& problems) {
  std::vector<std::string> told;
  for (const auto& [name, task] : tasks)
    if (const auto* rules = dynamic_cast<const TaskRules*>(&task->options()))
      for (const auto& role : rules->roles.items) told.push_back(role_name(role));
  visit_texts(model.options(), "model", [&](const Field& field, const std::string& place, const std::string& role) {
    if (field.is_role && !role.empty() && std::find(told.begin(), told.end(), role) == told.end())
      problems.add(place, "no task tells the role " + in_quotes(role) + did_you_mean(role, told) +
                              "; expected it in task.roles (told: " + listed(told) + ")");
  });
}

}  // namespace

const Catalogue& stage_catalogue() { return stages().catalogue(); }

void NamedTask::describe(Fields& fields) {
  fields.add("name", name, "what stages call it").required();
  fields.add("task", task, "data, and what is learnt from it");
}

void RunSpec::describe(Fields& fields) {
  fields.add("name", name, "what the run folder is called").required();
  fields.add("question", question, "what the experiment asks");
  fields.add("paper", paper, "arXiv number of the paper whose claim is tried");
  fields.add("seed", seed, "seeds weights, data order, dropout and all other draws").at_least(0);
  fields.add("device", device, "where it runs: cpu, cuda or cuda:N; the flag --device wins");
  fields
      .add("precision", precision,
           "type of weights and arithmetic; bfloat16: weights and sums in float32, matrix products in bfloat16")
      .one_of({"float32", "float64", "bfloat16"});
  fields.add("task", task, "data, and what is learnt from it");
  fields.add("tasks", tasks, "further tasks, which stages name: of the same vocabularies");
  fields.add("model", model, "the Transformer");
  fields.add("stages", stages, "what is done, in order").required();
  fields.add("sweep", sweep, "a grid {key: [values]} or a list of {key: value}: one run each");
  fields.add("arms", arms, "variants to compare, {name: {key: value}}: one run each, with each of the seeds");
  fields.add("seeds", seeds, "seeds of an experiment: one run each, for each arm").at_least(0);
  fields.add("expect", expect, "claims that the results of each run must make true");
  fields.add("compare", compare, "claims about the arms, over all seeds");
}

namespace {

/// Names of specs and stages become names of folders and files: none may lead out of the run folder.
bool names_a_folder(const std::string& name) {
  return name.find_first_not_of('.') != std::string::npos && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

std::string not_a_folder(const std::string& name) {
  return "expected letters, digits, '-', '_' and '.', since it names a folder; got " + in_quotes(name);
}

}  // namespace

void RunSpec::rules(Problems& problems) const {
  if (!name.empty() && !names_a_folder(name)) return problems.add("name", not_a_folder(name));
  std::map<std::string, const Choice*> by_name{{"", &task}};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto place = item_path("tasks", i);
    if (!by_name.emplace(tasks[i].name, &tasks[i].task).second)
      problems.add(place + ".name",
                   tasks[i].name.empty() ? "expected a name" : "two tasks are called " + in_quotes(tasks[i].name));
    names.push_back(tasks[i].name);
  }
  for (const auto& [name, one] : by_name)
    if (const auto* rules = dynamic_cast<const TaskRules*>(&one->options())) rules->model_rules(model, problems);
  auto texts = stages;  // visited to read
  visit_texts(texts, "stages", [&](const Field& field, const std::string& place, const std::string& name) {
    if (field.is_task && !by_name.count(name))
      problems.add(place, "no task is called " + in_quotes(name) + did_you_mean(name, names) +
                              " (tasks: " + listed(names) + ")");
  });
  metric_rules(stages, "stages", by_name, problems);
  role_rules(model, by_name, problems);
  if (stages.items.empty()) problems.add("stages", "expected at least one stage, such as \"train\"");
  check_stages(stages, "stages", {}, problems);
}

void check_stages(const Choices& stages, const std::string& path, EarlierStages known, Problems& problems) {
  std::set<std::string> here;
  for (std::size_t i = 0; i < stages.items.size(); ++i) {
    const auto& stage = stages.items[i];
    const auto place = path + "[" + std::to_string(i) + "]." + stage.type();
    const auto& common = common_of(stage);
    if (!common.model.empty() && !known.count(common.model)) {
      std::string exist = "initial";
      for (const auto& [name, earlier] : known) exist += name == "initial" ? "" : ", " + name;
      if (common.model != "initial")
        problems.add(place + ".model",
                     "no earlier stage is called " + in_quotes(common.model) + " (earlier: " + exist + ")");
    }
    if (!names_a_folder(stage_name(stage))) {
      problems.add(place + ".name", not_a_folder(stage_name(stage)));
      continue;
    }
    if (!here.insert(stage_name(stage)).second)
      problems.add(place, "two stages are called " + in_quotes(stage_name(stage)) + "; give one of them a \"name\"");
    if (const auto* more = dynamic_cast<const StageRules*>(&stage.options())) more->stage_rules(place, known, problems);
    known[stage_name(stage)] = &stage;
  }
}

std::string stage_name(const Choice& stage) {
  const auto& name = common_of(stage).name;
  return name.empty() ? stage.type() : name;
}

const StageCommon& common_of(const Choice& stage) { return dynamic_cast<const StageCommon&>(stage.options()); }

void StageCommon::describe_common(Fields& fields, const std::string& type) {
  fields.add("name", name, "what results and other stages call it").means("absent: " + type);
  fields.add("model", model, "the stage whose model it starts from, or \"initial\"").means("absent: the latest model");
  fields.add("task", task, "one of the spec's tasks").task().means("absent: the spec's task");
}

namespace {

// An arm that comes to the same run as another would be compared with itself: what it sets is the default already.
std::vector<Mistake> equal_arms(const std::vector<RunVariant>& variants, const Document& document) {
  std::vector<Mistake> mistakes;
  std::map<std::string, std::string> arm_of;  // by the whole spec
  for (const auto& variant : variants) {
    if (variant.arm.empty()) continue;
    const auto [first, added] = arm_of.emplace(dump_text(*variant.spec), variant.arm);
    const auto key = key_path("arms", variant.arm);
    if (!added && (mistakes.empty() || mistakes.back().path != key))
      mistakes.push_back(
          {document.place(key), key,
           "expected a run of its own, got the same as " + in_quotes(first->second) + ": both come to the same spec"});
  }
  return mistakes;
}

}  // namespace

std::vector<RunVariant> load_spec(const std::string& path, const std::vector<std::string>& overrides, bool find_files) {
  auto document = Document::load(path);
  auto mistakes = apply_overrides(document, overrides);
  if (!mistakes.empty()) throw_mistakes(sorted(std::move(mistakes)));
  const auto folder = std::filesystem::path(path).parent_path().string();
  std::vector<RunVariant> variants;
  for (auto& variant : expand(document)) {
    auto spec = std::make_shared<RunSpec>();
    auto found = read(variant.document, *spec);
    if (find_files)
      visit_texts(*spec, "", [&](const Field& field, const std::string& key, const std::string& file) {
        if (!field.is_file) return;
        try {
          resolve_data_path(file, folder);
        } catch (const FileError& error) {
          found.push_back({variant.document.place(key), key, error.what()});
        }
      });
    mistakes.insert(mistakes.end(), found.begin(), found.end());
    variants.push_back({variant.label, std::move(spec), variant.arm, variant.group});
  }
  throw_mistakes(sorted(std::move(mistakes)));
  throw_mistakes(equal_arms(variants, document));
  return variants;
}

}  // namespace headlab
