#include "src/task/role.h"

#include <algorithm>
#include <set>

#include "modules/attention/gate/role_masks.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/task/generated.h"
#include "src/task/translation.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

namespace headlab {
namespace {

std::shared_ptr<Translation> translator_with(const std::string& roles) {
  return make_task_as<Translation>(
      R"({"type": "translation", "data": {"type": "grammar", "train": 300, "valid": 40, "test": 20},
      "tokenizer": {"type": "bpe", "vocabulary": 300}, "roles": )" +
      roles + "}");
}

/// The first `count` examples of a part, one batch.
Batch batch_of(const Task& task, int64_t count, const std::string& split = "valid") {
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < count; ++i) examples.push_back(i);
  return task.batch(split, examples, torch::kCPU).inputs;
}

int64_t length_of(const Batch& batch, int64_t b) {
  return batch.source_mask_BS.defined() ? batch.source_mask_BS[b].sum().item<int64_t>() : batch.source_BS.size(1);
}

}  // namespace

TEST_CASE("neighbours are at most so far away, and padding is nobody's", "[roles][paper-26]") {
  const auto task = translator_with(R"([{"type": "neighbours", "distance": 1}])");
  const auto batch = batch_of(*task, 6);
  const auto mask = batch.side.at(role_side("neighbours"));
  const auto S = batch.source_BS.size(1);
  CHECK(mask.sizes() == at::IntArrayRef({6, S, S}));
  for (int64_t b = 0; b < 6; ++b)
    for (int64_t i = 0; i < S; ++i)
      for (int64_t j = 0; j < S; ++j)
        CHECK(mask[b][i][j].item<bool>() == (std::max(i, j) < length_of(batch, b) && std::abs(i - j) <= 1));
}

TEST_CASE("syntax is a word with its head and its children, by a walk of the tree; major relations are seen by all",
          "[roles][paper-26]") {
  const auto task =
      translator_with(R"(["syntax", {"type": "major_relations", "name": "major", "relations": ["nsubj"]}])");
  const auto batch = batch_of(*task, 10);
  const auto trees = task->trees("valid", 10);
  const auto syntax = batch.side.at(role_side("syntax")), major = batch.side.at(role_side("major"));
  int64_t subjects = 0;
  for (int64_t b = 0; b < 10; ++b) {
    const auto& tree = trees[static_cast<std::size_t>(b)];
    const auto n = length_of(batch, b);
    REQUIRE(static_cast<int64_t>(tree.word_at.size()) == n);
    const auto word_at = [&](int64_t i) { return tree.word_at[static_cast<std::size_t>(i)]; };
    for (int64_t i = 0; i < n; ++i) {
      std::set<int64_t> words;  // that i may look at
      for (std::size_t w = 0; w < tree.parent.size(); ++w) {
        const auto word = static_cast<int64_t>(w);
        if (word_at(i) == word) {
          words.insert(word);
          if (tree.parent[w] >= 0) words.insert(tree.parent[w]);
        }
        if (word_at(i) >= 0 && tree.parent[w] == word_at(i)) words.insert(word);
      }
      for (int64_t j = 0; j < n; ++j) {
        CHECK(syntax[b][i][j].item<bool>() == (i == j || (word_at(j) >= 0 && words.count(word_at(j)) > 0)));
        bool in_relation = word_at(j) < 0;
        for (std::size_t w = 0; w < tree.parent.size(); ++w)
          if (tree.relation[w] == "nsubj" && (static_cast<int64_t>(w) == word_at(j) || tree.parent[w] == word_at(j)))
            in_relation = true;
        CHECK(major[b][i][j].item<bool>() == in_relation);
      }
    }
    subjects += std::count(tree.relation.begin(), tree.relation.end(), "nsubj");
  }
  CHECK(subjects >= 10);
}

TEST_CASE("separators are punctuation and the ends of a text", "[roles][paper-26]") {
  const auto task = translator_with(R"([{"type": "separators", "tokens": ["."]}])");
  const auto batch = batch_of(*task, 8);
  const auto mask = batch.side.at(role_side("separators"));
  int64_t stops = 0;
  for (int64_t b = 0; b < 8; ++b)
    for (int64_t j = 0; j < length_of(batch, b); ++j) {
      const auto id = batch.source_BS[b][j].item<int64_t>();
      const bool separates = task->token(id) == "." || id == task->reads().ids.eos;
      CHECK(mask[b][0][j].item<bool>() == separates);
      stops += task->token(id) == ".";
    }
  CHECK(stops >= 4);
}

TEST_CASE("rare tokens stand in the fewest training texts, counted by loops; the control draws as many",
          "[roles][paper-26]") {
  const auto task = make_task_as<GeneratedTask>(
      R"({"type": "generated", "exercise": {"type": "rarest", "vocabulary": 50, "length": {"min": 12, "max": 34}},
      "train": 200, "valid": 30, "test": 5, "roles": [{"type": "rare", "least": 2, "share": 0.1}, {"type": "random", "name": "control", "seed": 4}]})");
  std::map<int64_t, int64_t> texts_with;
  for (int64_t i = 0; i < 200; ++i) {
    const auto ids = numbers_of(task->batch("train", {i}, torch::kCPU).inputs.target_BT);
    for (const auto id : std::set<int64_t>(ids.begin(), ids.end())) ++texts_with[id];
  }
  int64_t of_three = 0, differs = 0;
  for (int64_t i = 0; i < 30; ++i) {
    const auto inputs = task->batch("valid", {i}, torch::kCPU).inputs;
    const auto ids = numbers_of(inputs.target_BT);
    const auto n = static_cast<int64_t>(ids.size()), count = std::max<int64_t>(2, n / 10);
    of_three += count == 3;
    const auto rare = inputs.side.at(role_side("rare"))[0], control = inputs.side.at(role_side("control"))[0];
    CHECK(torch::equal(rare[0], rare[n - 1]));  // all look at the same
    CHECK(rare[0].sum().item<int64_t>() == count);
    CHECK(control[0].sum().item<int64_t>() == count);
    differs += !torch::equal(rare[0], control[0]);
    int64_t most_rare =
        0;  // of those that are chosen, the largest count of texts; none that is not may have a smaller one
    for (int64_t j = 0; j < n; ++j)
      if (rare[0][j].item<bool>()) most_rare = std::max(most_rare, texts_with[ids[static_cast<std::size_t>(j)]]);
    for (int64_t j = 0; j < n; ++j)
      if (!rare[0][j].item<bool>()) CHECK(texts_with[ids[static_cast<std::size_t>(j)]] >= most_rare);
    // The same text tells the same again, in another batch too.
    const auto again = task->batch("valid", {(i + 1) % 30, i}, torch::kCPU).inputs.side.at(role_side("control"))[1];
    CHECK(torch::equal(again.narrow(0, 0, n).narrow(1, 0, n), control));
  }
  CHECK(of_three > 0);
  CHECK(differs > 20);
}

TEST_CASE("a translator with role masks is told the roles of what it translates, sentence by sentence",
          "[roles][paper-26]") {
  const auto task = translator_with(R"([{"type": "neighbours", "distance": 1}, "syntax"])");
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.dropout = 0;
  options.embedding.max_length = 64;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  Choice gate(gate_catalogue, "role_masks");
  gate.as<RoleMasksOptions>().roles = {"neighbours", "syntax", "neighbours", "syntax"};
  options.encoder.attention.gates.items = {gate};
  const auto model = std::make_shared<EncoderDecoder>(options, task->context());
  fill(*model, 0.3);
  model->eval();
  const torch::NoGradGuard no_grad;
  EvaluateOptions evaluation;
  evaluation.split = "valid";
  evaluation.metrics = {"bleu"};
  evaluation.search.beam = 1;
  evaluation.search.max_length = 8;
  const auto result = task->evaluate(*model, evaluation, {});
  REQUIRE(result.hypotheses.size() > 20);
  CHECK(result.metrics.count("bleu") == 1);
  // Greedy by hand, a sentence at a time, with the roles of the full batch of one.
  std::set<std::string> different;
  for (int64_t i = 0; i < 10; ++i) {
    auto batch = task->batch("valid", {i}, torch::kCPU).inputs;
    batch.target_BT = batch.target_mask_BT = Tensor();
    Forward run;
    SearchOptions search_options;
    search_options.beam = 1;
    search_options.max_length = 8;
    const auto found = search(*model, batch, task->writes(), search_options, run);
    const auto written = task->tokenizers().target.decode(found.front().front().ids);
    CHECK(result.hypotheses[static_cast<std::size_t>(i)] == written);
    different.insert(written);
  }
  CHECK(different.size() > 3);  // the model says something of its source
}

TEST_CASE("roles that the data can't tell are refused where the task is made", "[roles][paper-26]") {
  CHECK_THROWS_WITH(make_task(R"({"type": "generated", "exercise": "copy", "roles": ["syntax"]})"),
                    ContainsSubstring("task.roles: \"syntax\" needs dependency trees, and this data has none"));
  CHECK_THROWS_WITH(make_task(R"({"type": "generated", "exercise": "copy", "roles": ["rares"]})"),
                    ContainsSubstring("did you mean \"rare\"?"));
}

}  // namespace headlab
