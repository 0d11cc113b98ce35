#include "src/task/generated.h"

#include <cmath>

#include "src/task/token_loss.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

std::shared_ptr<GeneratedTask> generated(const std::string& exercise, const std::string& more = "") {
  return make_task_as<GeneratedTask>(R"({"type": "generated", "train": 200, "valid": 20, "test": 20, "exercise": )" +
                                     exercise + more + "}");
}

// What the batch asks at each row it asks: {row: symbol}.
std::map<int64_t, std::string> asked_of(const GeneratedTask& task, const TokenBatch& batch) {
  std::map<int64_t, std::string> asked;
  const auto rows = numbers_of(batch.rows_N), targets = numbers_of(batch.targets_N);
  REQUIRE(rows.size() == targets.size());
  REQUIRE(batch.tokens == static_cast<int64_t>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    asked[rows[i]] = task.data().symbols.name(static_cast<int32_t>(targets[i]));
  return asked;
}

// Says the right answers, but for the questions whose number in the batch `wrong` names.
PlannedModel knows(const GeneratedTask& task, const std::string& split, int64_t classes,
                   std::function<bool(int64_t)> wrong) {
  return PlannedModel([&task, split, classes, wrong](const Batch& batch, const Tensor& rows) {
    // The test finds the example that the batch shows by what it reads.
    std::vector<int64_t> answers;
    for (int64_t b = 0; b < batch.target_BT.size(0); ++b)
      for (int64_t number = 0; number < static_cast<int64_t>(task.lengths(split).second.size()); ++number) {
        const auto own = task.batch(split, {number}, torch::kCPU);
        const auto T = own.inputs.target_BT.size(1);
        if (T > batch.target_BT.size(1) || !torch::equal(own.inputs.target_BT[0], batch.target_BT[b].narrow(0, 0, T)))
          continue;
        const auto its = numbers_of(own.targets_N);
        answers.insert(answers.end(), its.begin(), its.end());
        break;
      }
    REQUIRE(static_cast<int64_t>(answers.size()) == rows.size(0));
    auto logits = torch::zeros({rows.size(0), classes});
    for (int64_t i = 0; i < rows.size(0); ++i) logits[i][(answers[i] + (wrong(i) ? 1 : 0)) % classes] = 20;
    return logits;
  });
}

}  // namespace

TEST_CASE("a sequence asks its answers, or all that follows in training alone", "[generated]") {
  const std::string dialogue = R"({"type": "dialogue"})";  // bos key value DOUBT other ? -> value
  const auto answers = generated(dialogue), all = generated(dialogue, R"(, "score": "all")");
  for (const auto& task : {answers, all}) {
    const auto batch = task->batch("train", {0, 1}, torch::kCPU);
    CHECK(batch.inputs.target_BT.sizes() == at::IntArrayRef{2, 6});
    CHECK_FALSE(batch.inputs.target_mask_BT.defined());
    const auto asked = asked_of(*task, batch);
    if (task == answers) {
      CHECK(asked.size() == 2);
      CHECK(asked.count(5) + asked.count(11) == 2);
    } else {
      CHECK(asked.size() == 12);
      for (int64_t t = 0; t < 5; ++t)
        CHECK(asked.at(t) == task->decode({batch.inputs.target_BT[0][t + 1].item<int64_t>()}));
    }
    const auto valid = asked_of(*task, task->batch("valid", {3}, torch::kCPU));
    CHECK(valid.size() == 1);
    CHECK(valid.count(5) == 1);
  }
  CHECK(numbers_of(answers->batch("train", {0}, torch::kCPU).inputs.target_BT) ==
        numbers_of(all->batch("train", {0}, torch::kCPU).inputs.target_BT));
}

TEST_CASE("a pair is a source and a target, or one text", "[generated]") {
  const std::string reverse = R"({"type": "reverse", "vocabulary": 6, "length": {"min": 2, "max": 4}})";
  const auto pair = generated(reverse), sequence = generated(reverse, R"(, "format": "sequence")");
  const auto& examples = pair->data().parts.at("train");
  std::size_t short_one = 0, long_one = 0;
  while (examples[short_one].source.size() != 2) ++short_one;
  while (examples[long_one].source.size() != 4) ++long_one;
  const std::vector<int64_t> chosen{static_cast<int64_t>(short_one), static_cast<int64_t>(long_one)};
  const auto& s = examples[short_one].source;
  const auto& l = examples[long_one].source;

  const auto two = pair->batch("train", chosen, torch::kCPU);
  CHECK(numbers_of(two.inputs.source_BS) == std::vector<int64_t>{s[0], s[1], 3, 0, 0, l[0], l[1], l[2], l[3], 3});
  CHECK(numbers_of(two.inputs.target_BT) == std::vector<int64_t>{2, s[1], s[0], 0, 0, 2, l[3], l[2], l[1], l[0]});
  CHECK(numbers_of(two.inputs.source_mask_BS) == std::vector<int64_t>{1, 1, 1, 0, 0, 1, 1, 1, 1, 1});
  CHECK(numbers_of(two.rows_N) == std::vector<int64_t>{0, 1, 2, 5, 6, 7, 8, 9});
  CHECK(numbers_of(two.targets_N) == std::vector<int64_t>{s[1], s[0], 3, l[3], l[2], l[1], l[0], 3});
  CHECK(pair->lengths("train").first[short_one] == 3);
  CHECK(pair->lengths("train").second[long_one] == 5);

  const auto one = sequence->batch("train", {chosen[0]}, torch::kCPU);
  CHECK_FALSE(one.inputs.source_BS.defined());
  CHECK(numbers_of(one.inputs.target_BT) == std::vector<int64_t>{2, s[0], s[1], 3, s[1], s[0]});
  CHECK(numbers_of(one.rows_N) == std::vector<int64_t>{3, 4, 5});
  CHECK(numbers_of(one.targets_N) == std::vector<int64_t>{s[1], s[0], 3});
  CHECK(sequence->lengths("train").first.empty());
  CHECK(sequence->encode("s1 s0 what") == std::vector<int64_t>{5, 4, 1, 3});  // the source's end: the target follows
  CHECK(sequence->decode({2, 5, 3, 4}) == "s1 s0");
}

TEST_CASE("aligned answers are asked where they are, of padded texts too; a label is asked once a text",
          "[generated]") {
  const auto task =
      generated(R"({"type": "offsets", "offsets": [2], "vocabulary": 5, "length": {"min": 4, "max": 6}})");
  const auto& examples = task->data().parts.at("valid");
  std::vector<int64_t> chosen;
  for (const std::size_t length : {4u, 6u})
    for (std::size_t i = 0; i < examples.size(); ++i)
      if (examples[i].read.size() == length) {
        chosen.push_back(static_cast<int64_t>(i));
        break;
      }
  REQUIRE(chosen.size() == 2);
  const auto batch = task->batch("valid", chosen, torch::kCPU);
  CHECK(numbers_of(batch.rows_N) == std::vector<int64_t>{2, 3, 8, 9, 10, 11});
  const auto& a = examples[static_cast<std::size_t>(chosen[0])].read;
  CHECK(numbers_of(batch.targets_N)[0] == a[0]);
  CHECK(numbers_of(batch.targets_N)[1] == a[1]);

  const auto labels = generated(R"({"type": "sentiment", "length": {"min": 3, "max": 5}})");
  const auto texts = labels->batch("train", {4, 2, 7}, torch::kCPU);
  CHECK(numbers_of(texts.rows_N) == std::vector<int64_t>{0, 1, 2});
  CHECK(texts.tokens == 3);
  CHECK(labels->context().classes == 2);
  CHECK(task->context().classes == 4 + 5);
}

TEST_CASE("accuracy counts answers, sequence accuracy whole examples", "[generated]") {
  const auto task = generated(R"({"type": "recall", "pairs": {"min": 3, "max": 3}})");
  const auto symbols = task->data().symbols.size();
  EvaluateOptions options;
  options.max_tokens = 100000;  // one batch: 20 examples of 3 answers
  options.metrics = {"accuracy", "sequence_accuracy", "loss", "perplexity"};
  auto right = knows(*task, "test", symbols, [](int64_t) { return false; });
  auto result = task->evaluate(right, options, {});
  CHECK(result.metrics.at("accuracy") == 1);
  CHECK(result.metrics.at("sequence_accuracy") == 1);
  const auto nats = std::log(1 + static_cast<double>(symbols - 1) * std::exp(-20.0));
  CHECK(result.metrics.at("loss") == Approx(nats).margin(1e-6));
  // Two of the first example's answers and one of the second's are wrong.
  auto wrong = knows(*task, "test", symbols, [](int64_t i) { return i == 0 || i == 2 || i == 4; });
  result = task->evaluate(wrong, options, {});
  CHECK(result.metrics.at("accuracy") == Approx(57.0 / 60));
  CHECK(result.metrics.at("sequence_accuracy") == Approx(18.0 / 20));
  CHECK(result.metrics.at("perplexity") == Approx(std::exp(result.metrics.at("loss"))));
  CHECK(result.hypotheses.size() == 20);
  CHECK(result.samples.size() == 5);
  options.limit = 4;
  CHECK(task->evaluate(right, options, {}).hypotheses.size() == 4);
}

TEST_CASE("a small model learns to reverse in a few hundred steps", "[generated]") {
  torch::manual_seed(1);
  const auto task = make_task_as<GeneratedTask>(
      R"({"type": "generated", "exercise": {"type": "reverse", "vocabulary": 6, "length": {"min": 3, "max": 5}}, "train": 3000, "valid": 100, "test": 100})");
  EncoderDecoderOptions options;
  options.d_model = 32;
  options.dropout = 0;
  options.encoder.layers = options.decoder.layers = 1;
  for (auto* attention : {&options.encoder.attention, &options.decoder.attention, &options.decoder.cross_attention})
    attention->heads = 4;
  for (auto* ff : {&options.encoder.feed_forward, &options.decoder.feed_forward})
    ff->as<PositionWiseOptions>().width = 64;
  const auto model = std::make_shared<EncoderDecoder>(options, task->context());
  initialise(*model, 3);
  TrainOptions train;
  read_or_throw(
      Document::parse_text(R"({"steps": 250, "batch": {"max_tokens": 256}, "label_smoothing": 0, "log_every": 250,
      "schedule": {"type": "cosine", "peak": 0.008, "warmup": 20}})",
                           "x.json"),
      train);
  Trainer trainer(*model, *task, train, 32, 5);
  const auto before = task->evaluate(*model, {}, {}).metrics.at("accuracy");
  trainer.run({}, [](const TrainReport&) {});
  const auto after = task->evaluate(*model, {}, {}).metrics;
  CHECK(before < 0.4);
  CHECK(after.at("accuracy") > 0.9);
  CHECK(after.at("sequence_accuracy") > 0.6);
}
