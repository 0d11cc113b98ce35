#include "src/run/context.h"

#include "modules/base/random.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/json_file.h"
#include "src/heads/scale.h"
#include "src/run/run.h"
#include "src/spec/dump.h"
#include "src/spec/reader.h"

namespace headlab {
namespace {

HeadTable kept_heads(const Checkpoint& saved, const std::filesystem::path& folder) {
  try {
    return table_from_json(nlohmann::ordered_json(saved.state.at("heads")));
  } catch (const nlohmann::json::exception& error) {
    throw_foreign_state(folder, error);
  }
}

struct SavedOptions : Described<SavedOptions> {
  Choice model{model_catalogue, "encoder_decoder"};
  void describe(Fields& fields) override { fields.add("model", model, "the Transformer").required(); }
};

/// The options of the model that a checkpoint holds.
Choice saved_options(const nlohmann::json& model, const std::string& file) {
  SavedOptions saved;
  read_or_throw(Document::parse_text(nlohmann::json{{"model", model}}.dump(), file), saved);
  return saved.model;
}

}  // namespace

RunContext::RunContext(const RunSpec& spec, std::shared_ptr<Task> task, RunFolder folder, Console& console,
                       torch::Device device, std::function<bool()> stop,
                       std::map<std::string, std::shared_ptr<Task>> further)
    : spec_(spec),
      task_(std::move(task)),
      further_(std::move(further)),
      folder_(std::move(folder)),
      console_(console),
      device_(device),
      stop_(std::move(stop)) {
  const auto file = folder_.path / "results.json";
  try {
    if (std::filesystem::exists(file)) results_ = read_ordered_json_file(file);
  } catch (const FileError& error) {
    throw FileError(std::string(error.what()) + "; --fresh starts the run again from nothing");
  }
  if (!results_.contains("stages")) results_["stages"] = nlohmann::ordered_json::object();
}

uint64_t RunContext::seed_of(const std::string& stage) const {
  return Random::stream(static_cast<uint64_t>(spec_.seed), {text_hash(stage), static_cast<uint64_t>(repetition)})
      .next();
}

std::shared_ptr<Model> RunContext::make_model(const Choice& options, const HeadTable& kept) const {
  const auto before = torch::get_default_dtype();
  torch::set_default_dtype(c10::scalarTypeToTypeMeta(spec_.precision == "float64" ? torch::kFloat64 : torch::kFloat32));
  auto context = task_->context();
  context.kept = kept;
  std::shared_ptr<Model> made;
  try {
    made = models().make(options, context);
  } catch (...) {
    torch::set_default_dtype(before);
    throw;
  }
  torch::set_default_dtype(before);
  if (kept.empty()) initialise(*made, static_cast<uint64_t>(spec_.seed));
  made->to(device_);
  if (spec_.precision == "bfloat16") made->multiply_in(torch::kBFloat16);
  return made;
}

std::string RunContext::resolve(const std::string& stage) const {
  if (stage.empty()) return latest_;
  if (!prefix.empty() && (models_.count(prefix + stage) || results_["stages"].contains(prefix + stage)))
    return prefix + stage;
  return stage;
}

RunContext::Made& RunContext::made(const std::string& name) {
  auto& found = models_[name];
  if (found.model) return found;
  found.options = spec_.model;
  if (name == "initial") {
    found.model = make_model(spec_.model, {});
    return found;
  }
  const auto folder = folder_.checkpoints(name) / "final";
  const auto saved = load_checkpoint(folder);
  if (saved.state.contains("model"))
    found.options = saved_options(saved.state.at("model"), (folder / "state.json").string());
  auto model = make_model(found.options, kept_heads(saved, folder));
  load_tensors(*model, saved.model, (folder / "model.safetensors").string());
  found.model = std::move(model);
  return found;
}

std::shared_ptr<Model> RunContext::model(const std::string& stage) {
  return std::dynamic_pointer_cast<Model>(made(resolve(stage)).model->clone());
}

const Choice& RunContext::model_options(const std::string& stage) { return made(resolve(stage)).options; }

void RunContext::keep_model(const std::string& stage, std::shared_ptr<Model> model, const Choice& options) {
  const auto name = full(stage);
  Checkpoint saved;
  saved.model = named_tensors(*model);
  saved.state = {{"heads", to_json(model->heads())}, {"model", dump(options)}, {"seed", spec_.seed}};
  save_checkpoint(folder_.checkpoints(name) / "final", saved);
  models_[name] = {std::move(model), options};
  latest_ = name;
}

HeadSet RunContext::masked(const std::string& stage) const {
  const auto name = resolve(stage);
  const auto& stages = results_.at("stages");
  if (!stages.contains(name) || !stages.at(name).contains("masked")) return {};
  return parse_heads(stages.at(name).at("masked").get<std::vector<std::string>>());
}

HeadScores RunContext::scores(const std::string& stage) const {
  const auto name = resolve(stage);
  const auto file = folder_.heads(name);
  return HeadScores::from_json(read_ordered_json_file(file), file.string());
}

void RunContext::keep_scores(const std::string& stage, const HeadScores& scores) {
  const auto file = folder_.heads(full(stage));
  make_folders(file.parent_path());
  write_file_atomically(file, scores.to_json().dump(2) + "\n");
}

void RunContext::metrics_from(int64_t bytes) {
  metrics_ = std::make_unique<LineFile>(folder_.path / "metrics.jsonl", bytes);
  events_.reset();
}

EventFile& RunContext::events() {
  if (events_) return *events_;
  const auto rows = metric_rows(folder_.path);
  const auto now = seconds_since_1970();
  const auto at = [&](const nlohmann::json& row) {
    return now + row.value("seconds", 0.0) - rows.back().value("seconds", 0.0);
  };
  events_ =
      std::make_unique<EventFile>(folder_.path / "events.out.tfevents.headlab", rows.empty() ? now : at(rows.front()));
  for (const auto& row : rows) add_row(*events_, row, at(row));
  return *events_;
}

int64_t RunContext::metrics_bytes() {
  if (!metrics_) metrics_from(results_.value("metrics_bytes", int64_t{0}));
  metrics_->sync();
  return metrics_->bytes();
}

void RunContext::metric(const nlohmann::ordered_json& row) {
  if (!metrics_) metrics_from(results_.value("metrics_bytes", int64_t{0}));
  auto& shown = events();
  metrics_->append(row.dump());
  add_row(shown, row, seconds_since_1970());
}

void RunContext::save_results() const { write_file_atomically(folder_.path / "results.json", results_.dump(2) + "\n"); }

}  // namespace headlab
