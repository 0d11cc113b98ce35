#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "modules/model/model.h"
#include "src/decode/generate.h"
#include "src/metrics/names.h"
#include "src/task/role.h"

namespace headlab {

/// A batch as a model reads it, and what it shall answer.
struct TokenBatch {
  Batch inputs;
  Tensor targets_N;               // the right class of each question that counts: ids, tags, positions ...
  Tensor rows_N;                  // which of the batch's questions they are (Model::row_logits); undefined: all
  int64_t tokens = 0;             // N
  std::vector<int64_t> examples;  // indices within the split
  bool smooth = true;             // label smoothing makes sense; not for positions, where it would give padding a share
};

struct EvaluateOptions : Described<EvaluateOptions> {
  std::string split = "test";
  std::vector<std::string> metrics;
  SearchOptions search;
  int64_t limit = 0;
  int64_t max_tokens = 8192;
  int64_t samples = 5;
  void describe(Fields& fields) override;
};

struct Sample {
  std::string source, reference, hypothesis;
};

struct Evaluation {
  std::map<std::string, double> metrics;
  std::map<std::string, std::string> signatures;  // how a metric was computed, where that has to be said
  std::vector<Sample> samples;
  std::vector<std::string> hypotheses;
};

/// The texts that a model reads: their special ids, and whether a word has one id in source and target.
struct TextKind {
  TextIds ids;
  bool one_vocabulary = false;
};

/// What a model is for: its data, what it learns from a batch, and how well it does.
///
/// An example is what is shuffled, batched and counted: a pair of sentences, a block of a long text. Its questions are
/// what a batch asks of the model; the sum of their losses, taken example by example, is the example's loss.
class Task {
 public:
  virtual ~Task() = default;
  virtual ModelContext context() const = 0;
  /// Longest text the data has, in tokens as the model reads them.
  virtual int64_t longest() const = 0;
  /// "grammar en-de: 12,000 / 500 / 500 pairs; joint bpe 1,000".
  virtual std::string summary() const = 0;
  virtual nlohmann::ordered_json report() const = 0;
  /// Lengths of each example of a split as the model reads them: source and target (source empty where there is one
  /// text).
  virtual std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const = 0;
  /// Of the source, or of the one text. The default: the ids of trained tokenizers.
  virtual TextKind reads() const { return {}; }
  /// The special ids of what it says, where that is another text than what it reads.
  virtual TextIds writes() const { return reads().ids; }
  /// These examples, with what the task's roles tell of them (src/task/role.h).
  TokenBatch batch(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const;
  /// What they tell alone (Batch::side); empty without roles.
  std::map<std::string, Tensor> side_of(const std::string& split, const std::vector<int64_t>& examples,
                                        torch::Device device) const;
  /// The examples without roles.
  virtual TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                             torch::Device device) const = 0;
  /// What a person would write for an id that the model reads; "" for a special one.
  virtual std::string token(int64_t /*id*/) const { return ""; }
  /// The same of an id that it says, where that is another text than what it reads.
  virtual std::string target_token(int64_t id) const { return token(id); }
  /// What evaluate can measure.
  virtual MetricNames metrics() const = 0;
  /// The metrics asked for (wanted_metrics), of the model as it is `with` an intervention (none: {}). The model is put
  /// into evaluation mode and back. Throws UsageError for a metric that the task does not have.
  virtual Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const = 0;
  /// Files that belong to an exported model and a run folder, by name: tokenizers and lists of labels, all named
  /// *.model.
  virtual std::map<std::string, std::string> files() const = 0;
  /// From now on each batch tells these. Throws UsageError where a role needs what the data has not.
  void tell(const Choices& roles);

 private:
  std::shared_ptr<const RoleTeller> roles_;
};

/// What can be known of a task before its data is read. The options of every task derive from it, so that a spec's
/// mistakes are found before anything runs.
struct TaskRules {
  Choices roles{role_catalogue, false, {}};
  virtual ~TaskRules() = default;
  void describe_roles(Fields& fields);
  virtual MetricNames metrics() const = 0;
  /// Adds a problem where the model can't do the task; fields are named from the spec's root ("model.output").
  virtual void model_rules(const Choice& model, Problems& problems) const = 0;
};

/// A kind of model, and its output, that a task can use.
struct FittingModel {
  std::string model;   // "decoder_only"
  std::string output;  // "language_model"; an encoder_decoder has no other
};

/// Adds a problem where `model` is none of these: `expected encoder_decoder for the task translation, got
/// decoder_only`.
void expect_model(const std::string& task, const Choice& model, const std::vector<FittingModel>& fitting,
                  Problems& problems);

/// The metrics that an evaluation measures: those of the options, or else the task's own. Throws UsageError for one
/// that the task does not have.
std::vector<std::string> wanted_metrics(const Task& task, const EvaluateOptions& options);

/// `metric`, or where it is empty the task's first.
std::string metric_or_first(const Task& task, const std::string& metric);

/// Where a task finds what it needs.
struct TaskContext {
  std::string spec_folder;
  uint64_t seed = 1;
  /// Files of an earlier run of the same spec (tokenizers), by name; empty: made anew.
  std::map<std::string, std::string> files;
  /// false: a saved model is to be used, not trained or measured. A task whose files say enough reads no data then, so
  /// that a run folder can be used where its data is not; every split is absent.
  bool reads_data = true;
  /// The file of this name, or nullptr.
  const std::string* file(const std::string& name) const;
};

using Tasks = Registry<Task, const TaskContext&>;
const Tasks& tasks();
const Catalogue& task_catalogue();

/// A task that tells the roles of its options. Throws UsageError where the data does not know one.
std::shared_ptr<Task> make_task(const Choice& task, const TaskContext& context);

/// The names of the parts of the data, in the order they are told: "train", "valid", "test".
const std::vector<std::string>& split_names();

/// parts.at(split); throws UsageError for another name than train, valid and test.
template <class Part>
const Part& part_of(const std::map<std::string, Part>& parts, const std::string& split) {
  const auto found = parts.find(split);
  if (found == parts.end()) throw UsageError("no split \"" + split + "\"; expected train, valid or test");
  return found->second;
}

}  // namespace headlab
