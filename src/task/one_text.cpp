#include "src/task/one_text.h"

#include <algorithm>

#include "src/data/tokenizers.h"
#include "src/decode/pad.h"
#include "src/terminal/format.h"

namespace headlab {

TextIds text_ids(const Tokenizer& tokenizer) {
  return {tokenizer.pad_id(), tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.unk_id()};
}

std::string written(const Tokenizer& tokenizer, int64_t id) {
  if (id == tokenizer.pad_id() || id == tokenizer.bos_id() || id == tokenizer.eos_id() || id == tokenizer.unk_id())
    return "";
  return tokenizer.decode({id});
}

Tokenizer one_tokenizer(const TokenizerOptions& options, const std::vector<std::string>& lines,
                        const TaskContext& context) {
  if (const auto* saved = context.file("tokenizer.model")) return Tokenizer::from_bytes(*saved);
  auto joint = options;
  joint.joint = true;
  return make_tokenizers(joint, lines, {}, context.spec_folder, context.seed).source;
}

Labels labels_of(const std::set<std::string>& names, const TaskContext& context) {
  const auto* saved = context.file("labels.model");
  return saved ? Labels::from_file(*saved) : Labels(names);
}

std::vector<int64_t> framed(const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  std::vector<int64_t> all{tokenizer.bos_id()};
  all.insert(all.end(), ids.begin(), ids.end());
  all.push_back(tokenizer.eos_id());
  return all;
}

void one_text_rules(const TokenizerOptions& tokenizer, Problems& problems) {
  if (tokenizer.source_model || tokenizer.target_model)
    problems.add("tokenizer.source_model", "expected model: this task has one text");
}

std::vector<std::vector<int64_t>> word_pieces(const Tokenizer& tokenizer, const std::vector<std::string>& words) {
  std::vector<std::vector<int64_t>> pieces;
  for (const auto& word : words) {
    pieces.push_back(tokenizer.encode(word));
    if (pieces.back().empty()) pieces.back().push_back(tokenizer.unk_id());
  }
  return pieces;
}

bool OneTextTask::needs_no_data(const TaskContext& context, bool labelled) {
  if (context.reads_data || !context.file("tokenizer.model") || (labelled && !context.file("labels.model")))
    return false;
  tokenizer_ = one_tokenizer({}, {}, context);
  if (labelled) labels_ = labels_of({}, context);
  return true;
}

ModelContext OneTextTask::context() const {
  ModelContext context;
  context.target_vocabulary = tokenizer_->size();
  context.classes = labels_.size();
  return context;
}

int64_t OneTextTask::longest() const {
  std::size_t longest = 0;
  for (const auto& [split, texts] : ids_)
    for (const auto& ids : texts) longest = std::max(longest, ids.size());
  return static_cast<int64_t>(longest);
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> OneTextTask::lengths(const std::string& split) const {
  std::vector<int64_t> lengths;
  for (const auto& ids : part_of(ids_, split)) lengths.push_back(static_cast<int64_t>(ids.size()));
  return {{}, lengths};
}

std::map<std::string, std::string> OneTextTask::files() const {
  std::map<std::string, std::string> files{{"tokenizer.model", tokenizer_->serialized()}};
  if (labels_.size() > 0) files["labels.model"] = labels_.file();
  return files;
}

TokenBatch OneTextTask::read(const std::string& split, const std::vector<int64_t>& examples,
                             torch::Device device) const {
  const auto& texts = part_of(ids_, split);
  std::vector<std::vector<int64_t>> rows;
  for (const auto example : examples) rows.push_back(texts[static_cast<std::size_t>(example)]);
  TokenBatch batch;
  batch.examples = examples;
  std::tie(batch.inputs.target_BT, batch.inputs.target_mask_BT) = pad_right(rows, tokenizer_->pad_id(), device);
  return batch;
}

std::string Skipped::text() const { return with_commas(too_long) + " skipped (too long)"; }

}  // namespace headlab
