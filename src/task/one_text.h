#pragma once

#include "src/data/labelled/labels.h"
#include "src/task/task.h"
#include "src/text/tokenizer.h"

/// What tasks share whose model reads one text and says something of it.
namespace headlab {

/// The special ids of a tokenizer.
TextIds text_ids(const Tokenizer& tokenizer);

/// What a person would write for an id: its piece without the mark of a word's beginning; "" for a special id.
std::string written(const Tokenizer& tokenizer, int64_t id);

/// The tokenizer of an earlier run, of the options' file, or trained on these lines.
Tokenizer one_tokenizer(const TokenizerOptions& options, const std::vector<std::string>& lines,
                        const TaskContext& context);

/// The labels of an earlier run, or these.
Labels labels_of(const std::set<std::string>& names, const TaskContext& context);

/// bos + ids + eos
std::vector<int64_t> framed(const Tokenizer& tokenizer, const std::vector<int64_t>& ids);

/// Adds a problem for a tokenizer of two sides.
void one_text_rules(const TokenizerOptions& tokenizer, Problems& problems);

/// The ids of each word, for a tokenizer that has been trained on words between spaces; a word that gives no piece is
/// unk.
std::vector<std::vector<int64_t>> word_pieces(const Tokenizer& tokenizer, const std::vector<std::string>& words);

/// A task of which each example is one text; the model reads its ids and says something of it.
class OneTextTask : public Task {
 public:
  ModelContext context() const override;
  int64_t longest() const override;
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TextKind reads() const override { return {text_ids(*tokenizer_), false}; }
  std::string token(int64_t id) const override { return written(*tokenizer_, id); }
  std::map<std::string, std::string> files() const override;

 protected:
  /// Takes the tokenizer and, where `labelled`, the labels of an earlier run; true where nothing else is wanted, so
  /// that no data is read (TaskContext::reads_data).
  bool needs_no_data(const TaskContext& context, bool labelled);
  /// The texts of these examples, padded; targets, rows and their number are left to the task.
  TokenBatch read(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const;

  // Filled by the constructor of each task.
  std::map<std::string, std::vector<std::vector<int64_t>>> ids_;  // by split: of each example, special ids included
  std::optional<Tokenizer> tokenizer_;
  Labels labels_;  // none where the answer is no label
  std::string summary_;
  nlohmann::ordered_json report_;
};

/// What became of training examples.
struct Skipped {
  int64_t too_long = 0;
  std::string text() const;  // "3 skipped (too long)"
};

}  // namespace headlab
