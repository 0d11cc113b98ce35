#include "src/task/language_model.h"

#include <cmath>
#include <numeric>

#include "src/task/token_loss.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

const std::string letters = "abcdefghijk";  // 12 tokens with the line's end

// One line of text in each part, by characters.
struct LetterFiles {
  explicit LetterFiles(const std::string& valid = letters + "\n") {
    for (const auto* name : {"train.txt", "test.txt"}) write_text(scratch / name, letters + "\n");
    write_text(scratch / "valid.txt", valid);
  }
  std::shared_ptr<LanguageModel> task(const std::string& more, const std::string& units = "characters") const {
    return make_task_as<LanguageModel>(
        R"({"type": "language_model", "units": ")" + units +
            R"(", "data": {"type": "files", "train": "train.txt", "valid": "valid.txt", "test": "test.txt"}, )" + more +
            "}",
        scratch.path.string());
  }
  Scratch scratch;
};

// "^abc": what the model reads in each row of a batch; padding is "_".
std::vector<std::string> read_rows(const LanguageModel& task, const TokenBatch& batch) {
  std::vector<std::string> rows;
  const auto& ids = batch.inputs.target_BT;
  for (int64_t b = 0; b < ids.size(0); ++b) {
    auto& row = rows.emplace_back();
    for (const auto id : numbers_of(ids[b]))
      row += id == task.codec().bos_id() ? "^" : id == task.codec().pad_id() ? "_" : task.decode({id});
  }
  return rows;
}

DecoderOnlyOptions tiny_decoder(int64_t max_length = 32) {
  auto options = small_decoder_only();
  options.embedding.max_length = max_length;
  return options;
}

}  // namespace

TEST_CASE("training blocks follow one another, and each predicts all of its tokens", "[language_model]") {
  const LetterFiles files;
  const auto task = files.task(R"("block": 5)");
  CHECK(task->lengths("train").second == std::vector<int64_t>{5, 5, 2});
  CHECK(task->lengths("train").first.empty());
  const auto whole = task->batch("train", {1, 0}, torch::kCPU);
  CHECK(read_rows(*task, whole) == std::vector<std::string>{"^fghi", "^abcd"});
  CHECK(task->decode(numbers_of(whole.targets_N)) == "fghijabcde");
  CHECK_FALSE(whole.rows_N.defined());
  CHECK(whole.tokens == 10);
  const auto ragged = task->batch("train", {2, 1}, torch::kCPU);
  CHECK(read_rows(*task, ragged) == std::vector<std::string>{"^k___", "^fghi"});
  CHECK(task->decode(numbers_of(ragged.targets_N)) == "k\nfghij");
  CHECK(numbers_of(ragged.rows_N) == std::vector<int64_t>{0, 1, 5, 6, 7, 8, 9});
}

TEST_CASE("with a training stride of 1 a block may start anywhere", "[language_model]") {
  const LetterFiles files;
  const auto task = files.task(R"("block": 5, "train_stride": 1)");
  REQUIRE(task->lengths("train").second == std::vector<int64_t>(8, 5));
  const auto batch = task->batch("train", {3, 7}, torch::kCPU);
  CHECK(read_rows(*task, batch) == std::vector<std::string>{"^defg", "^hijk"});
  CHECK(task->decode(numbers_of(batch.targets_N)) == "defghhijk\n");
}

TEST_CASE("evaluation scores every token exactly once, with what comes before it as context", "[language_model]") {
  const LetterFiles files;
  for (const int64_t stride : {1, 2, 3, 5}) {
    const auto task = files.task(R"("block": 5, "stride": )" + std::to_string(stride));
    std::string scored;
    for (int64_t window = 0; window < static_cast<int64_t>(task->lengths("test").second.size()); ++window) {
      const auto batch = task->batch("test", {window}, torch::kCPU);
      const auto said = task->decode(numbers_of(batch.targets_N));
      const auto read = read_rows(*task, batch).front();
      std::vector<int64_t> rows(said.size());
      std::iota(rows.begin(), rows.end(), int64_t{0});
      if (batch.rows_N.defined()) rows = numbers_of(batch.rows_N);
      REQUIRE(rows.size() == said.size());
      for (std::size_t i = 0; i < said.size(); ++i) {
        const auto at = static_cast<std::size_t>(rows[i]);
        if (at > 0)
          CHECK(static_cast<char>(read.at(at) + 1) == (said[i] == '\n' ? 'l' : said[i]));  // the letter before it
      }
      CHECK(rows.front() == (window == 0 ? 0 : 5 - stride));  // what comes before the scored tokens
      scored += said;
    }
    CHECK(scored == letters + "\n");
  }
}

TEST_CASE("the metrics are those of a loop over the windows, and their denominators are the raw text's",
          "[language_model]") {
  const DefaultDtype in_double(torch::kFloat64);
  const std::string text = "a bc  d\n\nkk e\n";  // 5 words, 3 line ends, 14 characters
  const LetterFiles files(text);
  const auto task = files.task(R"("block": 6, "stride": 4)");
  const auto model =
      std::dynamic_pointer_cast<DecoderOnly>(make_model(model_choice("decoder_only", tiny_decoder()), task->context()));
  const auto ids = task->encode(text);
  double nll = 0;
  int64_t right = 0, done = 0;
  for (std::size_t start = 0; done < static_cast<int64_t>(ids.size()); start += 4) {
    std::vector<int64_t> read{task->codec().bos_id()};
    for (auto t = start; t < std::min(start + 6, ids.size()); ++t) {
      Forward run;
      Batch batch;
      batch.target_BT = torch::tensor(read, torch::kLong).unsqueeze(0);
      const auto log_p = torch::log_softmax(model->logits(batch, run)[0][-1], -1);
      if (static_cast<int64_t>(t) >= done) {
        nll -= log_p[ids[t]].item<double>();
        right += log_p.argmax().item<int64_t>() == ids[t];
        ++done;
      }
      read.push_back(ids[t]);
    }
  }
  EvaluateOptions options;
  options.split = "valid";
  options.metrics = {"loss", "perplexity", "accuracy", "word_perplexity", "bits_per_character"};
  const auto result = task->evaluate(*model, options, {});
  CHECK(result.metrics.at("loss") == Approx(nll / 14).epsilon(1e-10));
  CHECK(result.metrics.at("perplexity") == Approx(std::exp(nll / 14)).epsilon(1e-10));
  CHECK(result.metrics.at("accuracy") == Approx(static_cast<double>(right) / 14));
  CHECK(result.metrics.at("word_perplexity") == Approx(std::exp(nll / 8)).epsilon(1e-10));
  CHECK(result.metrics.at("bits_per_character") == Approx(nll / 14 / std::log(2.0)).epsilon(1e-10));
  CHECK_THAT(result.signatures.at("word_perplexity"), ContainsSubstring("per:word and line end|count:8|lines:3|"));
  CHECK_THAT(result.signatures.at("bits_per_character"), ContainsSubstring("count:14|"));
  CHECK_THAT(result.signatures.at("word_perplexity"),
             ContainsSubstring("|unknown:4|block:6|stride:4"));  // "  " and a space are not in train

  EvaluateOptions defaults;
  CHECK(task->evaluate(*model, defaults, {}).metrics.size() == 3);
  options.limit = 1;
  CHECK_THROWS_WITH(task->evaluate(*model, options, {}),
                    ContainsSubstring("evaluate.limit: word_perplexity is of a whole text"));
  options.metrics = {"loss"};
  CHECK(task->evaluate(*model, options, {}).metrics.count("loss") == 1);
  options.metrics = {"bleu"};
  CHECK_THROWS_WITH(task->evaluate(*model, options, {}), ContainsSubstring("unknown metric \"bleu\""));
}

TEST_CASE("pieces, characters and bytes of the same text have the same words and characters", "[language_model]") {
  Scratch scratch;
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "the cat " + std::string(i % 2 ? "sat" : "ran") + " on mat " + std::to_string(i) + "\n";
  write_text(scratch / "x.txt", text);
  std::vector<std::shared_ptr<LanguageModel>> tasks;
  for (const std::string units : {"pieces", "characters", "bytes"})
    tasks.push_back(make_task_as<LanguageModel>(
        R"({"type": "language_model", "data": {"type": "file", "file": "x.txt", "valid": 0.1, "test": 0.1}, "block": 16,
        "tokenizer": {"type": "bpe", "vocabulary": 60}, "units": ")" +
            units + "\"}",
        scratch.path.string()));
  for (const auto& task : tasks)
    for (const auto* split : {"train", "valid", "test"}) {
      CHECK(task->report()[split]["words_and_line_ends"] == tasks[0]->report()[split]["words_and_line_ends"]);
      CHECK(task->report()[split]["characters"] == tasks[0]->report()[split]["characters"]);
    }
  CHECK(tasks[1]->report()["train"]["tokens"] == tasks[1]->report()["train"]["characters"]);
  CHECK(tasks[0]->report()["train"]["tokens"].get<int64_t>() < tasks[1]->report()["train"]["tokens"].get<int64_t>());
  CHECK(tasks[0]->decode(tasks[0]->encode("the cat sat\non mat")) == "the cat sat\non mat");
  // Made again from the files of a run, a task has the same ids.
  const auto again = make_task_as<LanguageModel>(
      R"({"type": "language_model", "data": {"type": "file", "file": "x.txt"}, "units": "characters"})",
      scratch.path.string(), {{"characters.model", "abc"}});
  CHECK(again->codec().size() == 7);
}

TEST_CASE("the grammar is text to model too, one side a line", "[language_model]") {
  const auto task = make_task_as<LanguageModel>(
      R"({"type": "language_model", "data": {"type": "grammar", "language": "de", "train": 50, "valid": 5, "test": 5}, "units": "characters", "block": 64})");
  CHECK(task->report()["valid"]["lines"] == 5);
  CHECK(task->longest() == 64);
  const auto batch = task->batch("train", {0}, torch::kCPU);
  CHECK(task->decode(numbers_of(batch.targets_N)).size() >= 64);
}
