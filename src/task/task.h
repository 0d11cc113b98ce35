#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "modules/model/model.h"
#include "src/decode/search.h"

namespace headlab {

/// A batch as a model reads it, and what it shall answer.
struct TokenBatch {
  Batch inputs;
  Tensor targets_N;             // the ids to be predicted, padding left out
  Tensor rows_N;                // where each stands in [B*T]; undefined: everywhere
  Tensor example_N;             // which row of the batch each belongs to
  int64_t tokens = 0;           // N
  std::vector<int64_t> examples;  // indices within the split
};

struct EvaluateOptions : Described<EvaluateOptions> {
  std::string split = "test";
  std::vector<std::string> metrics{"bleu", "chrf", "loss", "perplexity"};
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
  std::map<std::string, std::string> signatures;
  std::vector<Sample> samples;
  std::vector<std::string> hypotheses;
};

/// The texts that a model reads: their special ids, and whether a word has one id in source and target.
struct TextKind {
  TextIds ids;
  bool one_vocabulary = false;
};

/// What a model is for: its data, what it learns from a batch, and how well it does.
class Task {
 public:
  virtual ~Task() = default;
  virtual ModelContext context() const = 0;
  /// Longest text the data has, in tokens as the model reads them.
  virtual int64_t longest() const = 0;
  /// "grammar en-de: 12,000 / 500 / 500 pairs; joint bpe 1,000".
  virtual std::string summary() const = 0;
  virtual nlohmann::ordered_json report() const = 0;
  /// Lengths of each example of a split as the model reads them: source and target (empty where there is one text).
  virtual std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const = 0;
  /// Of the source, or of the one text. The default: the ids of trained tokenizers.
  virtual TextKind reads() const { return {}; }
  virtual TokenBatch batch(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const = 0;
  /// The metrics asked for, with `scale` on the heads (empty: none). The model is put into evaluation mode and back.
  virtual Evaluation evaluate(Model& model, const EvaluateOptions& options, const std::map<Stack, Tensor>& scale) const = 0;
  virtual const std::vector<std::string>& metric_names() const = 0;
  /// Files that belong to an exported model and a run folder: tokenizers, by name.
  virtual std::map<std::string, std::string> files() const = 0;
};

/// Where a task finds what it needs.
struct TaskContext {
  std::string spec_folder;
  uint64_t seed = 1;
  /// Files of an earlier run of the same spec (tokenizers), by name; empty: made anew.
  std::map<std::string, std::string> files;
};

using Tasks = Registry<Task, const TaskContext&>;
const Tasks& tasks();
const Catalogue& task_catalogue();

/// Smaller is better for loss and perplexity, larger for all else.
bool smaller_is_better(const std::string& metric);

}  // namespace headlab
