#pragma once

#include <fstream>
#include <functional>

#include "modules/tensor/torch.h"
#include "src/spec/reader.h"
#include "src/task/task.h"
#include "tests/support/scratch.h"

/// Tasks from JSON, and models that say what a test plans.
namespace headlab {

struct TaskHolder : Described<TaskHolder> {
  Choice task{task_catalogue, "translation"};
  void describe(Fields& fields) override { fields.add("task", task, "the task"); }
};

/// The task that `json` ({"type": ...}) describes, its files looked for in `folder`.
inline std::shared_ptr<Task> make_task(const std::string& json, const std::string& folder = ".",
                                       const std::map<std::string, std::string>& files = {}, bool reads_data = true) {
  TaskHolder holder;
  read_or_throw(Document::parse_text("{\"task\": " + json + "}", "x.json"), holder);
  TaskContext context;
  context.spec_folder = folder;
  context.files = files;
  context.reads_data = reads_data;
  return make_task(holder.task, context);
}

template <class T>
std::shared_ptr<T> make_task_as(const std::string& json, const std::string& folder = ".",
                                const std::map<std::string, std::string>& files = {}) {
  return std::dynamic_pointer_cast<T>(make_task(json, folder, files));
}

inline void write_text(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::vector<int64_t> numbers_of(const Tensor& ids) {
  const auto flat = ids.to(torch::kCPU, torch::kLong).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

/// A model without layers whose answers a test makes up: logits of the questions, from the batch alone.
class PlannedModel : public Model {
 public:
  using Plan = std::function<Tensor(const Batch& batch, const Tensor& rows_N)>;
  explicit PlannedModel(Plan plan) : plan_(std::move(plan)) {
    weight = register_parameter("weight", torch::zeros({1}));
  }
  Tensor row_logits(const Batch& batch, const Tensor& rows_N, Forward&) override { return plan_(batch, rows_N); }
  Tensor hidden(const Batch&, Forward&) override { return {}; }
  Tensor logits_of(const Tensor&, Forward&) override { return {}; }
  std::unique_ptr<Stepper> stepper(const Batch&, Forward&) override { return nullptr; }
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return {}; }
  int64_t max_length() const override { return 1000; }
  int64_t target_vocabulary() const override { return 0; }
  int64_t flops(int64_t, int64_t) const override { return 0; }

 private:
  Plan plan_;
  Tensor weight;
};

}  // namespace headlab
