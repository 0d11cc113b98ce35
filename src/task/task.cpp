#include "src/task/task.h"

#include <algorithm>

#include "modules/base/nearest.h"
#include "modules/model/frame_encoder.h"
#include "modules/model/single_stack.h"

namespace headlab {
namespace {

// The output of a model; nullptr for a model that has no choice of one.
const Choice* output_of(const Choice& model) {
  if (const auto* decoder = dynamic_cast<const DecoderOnlyOptions*>(&model.options())) return &decoder->output;
  if (const auto* encoder = dynamic_cast<const EncoderOnlyOptions*>(&model.options())) return &encoder->output;
  if (const auto* frames = dynamic_cast<const FrameEncoderOptions*>(&model.options())) return &frames->output;
  return nullptr;
}

std::string either(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

}  // namespace

void EvaluateOptions::describe(Fields& fields) {
  fields.add("split", split, "the part of the data").one_of({"train", "valid", "test"});
  fields.add("metrics", metrics, "what is measured").metric().means("empty: what the task measures by default");
  fields.add("search", search, "how text is generated, for tasks that measure what is generated");
  fields.add("limit", limit, "the first examples alone").at_least(0).unit("examples").means("0: all");
  fields.add("max_tokens", max_tokens, "tokens of a batch, padding included").at_least(1).unit("tokens");
  fields.add("samples", samples, "outputs to show").at_least(0);
}

TokenBatch Task::batch(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const {
  auto made = collect(split, examples, device);
  if (roles_) roles_->tell(split, made);
  return made;
}

std::map<std::string, Tensor> Task::side_of(const std::string& split, const std::vector<int64_t>& examples,
                                            torch::Device device) const {
  return roles_ ? batch(split, examples, device).inputs.side : std::map<std::string, Tensor>{};
}

void Task::tell(const Choices& roles) {
  roles_ = roles.items.empty() ? nullptr : std::make_shared<RoleTeller>(roles, *this);
}

void TaskRules::describe_roles(Fields& fields) {
  fields.add("roles", roles,
             "what is told of each text beside its tokens: who may look at whom, for heads with role_masks");
}

std::shared_ptr<Task> make_task(const Choice& choice, const TaskContext& context) {
  auto task = tasks().make(choice, context);
  if (const auto* rules = dynamic_cast<const TaskRules*>(&choice.options()); rules && context.reads_data)
    task->tell(rules->roles);
  return task;
}

void expect_model(const std::string& task, const Choice& model, const std::vector<FittingModel>& fitting,
                  Problems& problems) {
  const auto* output = output_of(model);
  std::vector<std::string> models, outputs;
  for (const auto& fits : fitting) {
    if (fits.model == model.type()) {
      if (!output || fits.output == output->type()) return;
      outputs.push_back(fits.output);
    }
    if (std::find(models.begin(), models.end(), fits.model) == models.end()) models.push_back(fits.model);
  }
  if (outputs.empty())
    problems.add("model", "expected " + either(models) + " for the task " + task + ", got " + model.type());
  else
    problems.add("model.output", "expected " + either(outputs) + " for the task " + task + ", got " + output->type());
}

std::vector<std::string> wanted_metrics(const Task& task, const EvaluateOptions& options) {
  const auto names = task.metrics();
  for (const auto& metric : options.metrics)
    if (!names.has(metric)) throw UsageError("evaluate.metrics: " + unknown_name("metric", metric, names.all));
  return options.metrics.empty() ? names.defaults : options.metrics;
}

std::string metric_or_first(const Task& task, const std::string& metric) {
  return metric.empty() ? task.metrics().defaults.front() : metric;
}

const std::string* TaskContext::file(const std::string& name) const {
  const auto found = files.find(name);
  return found == files.end() ? nullptr : &found->second;
}

const std::vector<std::string>& split_names() {
  static const std::vector<std::string> names{"train", "valid", "test"};
  return names;
}

}  // namespace headlab
