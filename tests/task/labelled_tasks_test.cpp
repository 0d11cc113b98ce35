// Classification, tagging and spans: batches against the text, metrics against planned answers.
#include <cmath>

#include "modules/base/error.h"
#include "src/task/classification.h"
#include "src/task/span.h"
#include "src/task/tagging.h"
#include "src/task/token_loss.h"
#include "src/text/tokenizer.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

// The same file for each part, so that parts can be compared with its lines.
std::string same_files(const std::string& name) {
  return "\"train\": \"" + name + "\", \"valid\": \"" + name + "\", \"test\": \"" + name + "\"";
}

Tokenizer tokenizer_of(const Task& task) { return Tokenizer::from_bytes(task.files().at("tokenizer.model")); }

const char* colours =
    "{\"text\": \"red red blue\", \"colour\": \"red\"}\n{\"text\": \"blue\", \"colour\": \"blue\"}\n"
    "{\"text\": \"blue green blue blue\", \"colour\": \"blue\"}\n{\"text\": \"green\", \"colour\": \"green\"}\n";

}  // namespace

TEST_CASE("a text's class is asked once, with bos and eos around its pieces", "[classification]") {
  Scratch scratch;
  write_text(scratch / "x.jsonl", colours);
  const auto task = make_task_as<Classification>(
      R"({"type": "classification", "tokenizer": {"type": "word"}, "data": {"type": "jsonl", "label": "colour", )" +
          same_files("x.jsonl") + "}}",
      scratch.path.string());
  const auto tokenizer = tokenizer_of(*task);
  CHECK(task->labels().file() == "blue\ngreen\nred\n");
  CHECK(task->files().at("labels.model") == task->labels().file());
  CHECK(task->context().classes == 3);
  CHECK(task->lengths("valid").second == std::vector<int64_t>{5, 3, 6, 3});
  CHECK(task->longest() == 6);
  const auto batch = task->batch("train", {1, 0}, torch::kCPU);
  CHECK(numbers_of(batch.inputs.target_BT[0]) == std::vector<int64_t>{tokenizer.bos_id(), tokenizer.encode("blue")[0],
                                                                      tokenizer.eos_id(), tokenizer.pad_id(),
                                                                      tokenizer.pad_id()});
  CHECK(numbers_of(batch.inputs.target_mask_BT) == std::vector<int64_t>{1, 1, 1, 0, 0, 1, 1, 1, 1, 1});
  CHECK(numbers_of(batch.targets_N) == std::vector<int64_t>{0, 2});
  CHECK_FALSE(batch.rows_N.defined());
  CHECK(batch.tokens == 2);

  // Says blue whatever it reads, but red for texts of five ids.
  PlannedModel model([&](const Batch& read, const Tensor&) {
    auto logits = torch::zeros({read.target_BT.size(0), 3});
    for (int64_t b = 0; b < logits.size(0); ++b) {
      const auto length =
          read.target_mask_BT.defined() ? read.target_mask_BT[b].sum().item<int64_t>() : read.target_BT.size(1);
      logits[b][length == 5 ? 2 : 0] = 3;
    }
    return logits;
  });
  const auto result = task->evaluate(model, {}, {});
  CHECK(result.hypotheses == std::vector<std::string>{"red", "blue", "blue", "blue"});
  CHECK(result.metrics.at("accuracy") == Approx(3.0 / 4));
  CHECK(result.metrics.at("macro_f1") == Approx((4.0 / 5 + 0 + 1) / 3));
  const auto of_right = std::log(1 + 2 * std::exp(-3.0));
  CHECK(result.metrics.at("loss") == Approx((3 * of_right + of_right + 3) / 4));
  CHECK(result.samples.at(0).source == "red red blue");
}

TEST_CASE("a saved model of labelled texts is used where its data is not", "[classification][tagging][span]") {
  Scratch scratch, elsewhere;
  write_text(scratch / "x.jsonl", colours);
  write_text(scratch / "x.txt", "Anna B-PER\nsees O\n");
  write_text(scratch / "x.tsv", "question\tcontext\tanswer\tanswer_start\nwho\tAnna sees\tAnna\t0\n");
  for (const auto& [type, data] :
       {std::pair("classification", R"({"type": "jsonl", "label": "colour", )" + same_files("x.jsonl")),
        {"tagging", R"({"type": "columns", )" + same_files("x.txt")},
        {"span", R"({"type": "tsv", )" + same_files("x.tsv")}}) {
    const auto json =
        std::string(R"({"type": ")") + type + R"(", "tokenizer": {"type": "word"}, "data": )" + data + "}}";
    INFO(json);
    const auto files = make_task(json, scratch.path.string())->files();
    CHECK_THROWS_AS(make_task(json, elsewhere.path.string(), files), Error);
    const auto saved = make_task(json, elsewhere.path.string(), files, false);
    CHECK(saved->files() == files);
    CHECK(saved->context().classes == static_cast<int64_t>(std::string(type) == "classification" ? 3
                                                           : std::string(type) == "tagging"      ? 2
                                                                                                 : 0));
    CHECK(saved->context().target_vocabulary > 4);
    CHECK(saved->longest() == 0);
    CHECK_THROWS_AS(saved->lengths("train"), UsageError);
    auto without = files;
    without.erase("tokenizer.model");
    CHECK_THROWS_AS(make_task(json, elsewhere.path.string(), without, false), Error);
  }
}

TEST_CASE("classes from columns; long texts are skipped in training alone", "[classification]") {
  Scratch scratch;
  write_text(scratch / "x.tsv", "good\ta b\nbad\tc\ngood\ta b c a b c\n");
  const auto task =
      make_task_as<Classification>(R"({"type": "classification", "tokenizer": {"type": "word"}, "max_length": 4,
      "data": {"type": "tsv", "header": false, "text": "2", "label": "1", )" +
                                       same_files("x.tsv") + "}}",
                                   scratch.path.string());
  CHECK(task->lengths("train").second == std::vector<int64_t>{4, 3});
  CHECK(task->lengths("test").second == std::vector<int64_t>{4, 3, 8});
  CHECK_THAT(task->summary(), ContainsSubstring("1 skipped (too long)"));
  // Made again from a run's files, with the labels of that run.
  CHECK_THROWS_WITH(
      make_task(
          R"({"type": "classification", "tokenizer": {"type": "word"}, "data": {"type": "tsv", "header": false, "text": "2", "label": "1", )" +
              same_files("x.tsv") + "}}",
          scratch.path.string(),
          {{"labels.model", "good\n"}, {"tokenizer.model", task->files().at("tokenizer.model")}}),
      ContainsSubstring("x.tsv:2: unknown label \"bad\""));
}

TEST_CASE("a tag is asked at the first piece of each word", "[tagging]") {
  Scratch scratch;
  std::string text;
  for (int i = 0; i < 30; ++i) text += "the\tDET\nhouses\tNOUN\n.\tPUNCT\n\nhouse\tNOUN\nthe\tX\n\u00A0\tX\n\n";
  write_text(scratch / "x.conll", text);
  const auto task = make_task_as<Tagging>(
      R"({"type": "tagging", "tokenizer": {"type": "bpe", "vocabulary": 16}, "data": {"type": "columns", )" +
          same_files("x.conll") + "}}",
      scratch.path.string());
  const auto tokenizer = tokenizer_of(*task);
  const auto batch = task->batch("valid", {1, 0}, torch::kCPU);
  const std::vector<std::vector<std::string>> words{{"house", "the", "\u00A0"}, {"the", "houses", "."}};
  const auto T = batch.inputs.target_BT.size(1);
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < 2; ++b) {
    std::vector<int64_t> expected{tokenizer.bos_id()};
    for (const auto& word : words[static_cast<std::size_t>(b)]) {
      rows.push_back(b * T + static_cast<int64_t>(expected.size()));
      auto pieces = tokenizer.encode(word);
      if (pieces.empty()) pieces = {tokenizer.unk_id()};  // a word of white space still stands for one
      expected.insert(expected.end(), pieces.begin(), pieces.end());
    }
    expected.push_back(tokenizer.eos_id());
    REQUIRE(expected.size() > 5);  // some word has several pieces
    expected.resize(static_cast<std::size_t>(T), tokenizer.pad_id());
    CHECK(numbers_of(batch.inputs.target_BT[b]) == expected);
  }
  CHECK(numbers_of(batch.rows_N) == rows);
  std::vector<std::string> tags;
  for (const auto id : numbers_of(batch.targets_N)) tags.push_back(task->labels().name(id));
  CHECK(tags == std::vector<std::string>{"NOUN", "X", "X", "DET", "NOUN", "PUNCT"});
}

TEST_CASE("the metrics of tags are those of their words and entities", "[tagging]") {
  Scratch scratch;
  write_text(scratch / "x.conll", "a\tB-PER\nb\tI-PER\nc\tO\nd\tB-LOC\n\na\tB-PER\nc\tO\n");
  const auto task = make_task_as<Tagging>(
      R"({"type": "tagging", "scheme": "entities", "tokenizer": {"type": "word"}, "data": {"type": "columns", )" +
          same_files("x.conll") + "}}",
      scratch.path.string());
  const auto tokenizer = tokenizer_of(*task);
  // a: B-PER, b: I-PER, c: B-LOC, d: O
  const std::map<std::string, std::string> says{{"a", "B-PER"}, {"b", "I-PER"}, {"c", "B-LOC"}, {"d", "O"}};
  PlannedModel model([&](const Batch& read, const Tensor& rows) {
    auto logits = torch::zeros({rows.size(0), task->labels().size()});
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const auto word = tokenizer.decode({read.target_BT.flatten()[rows[i].item<int64_t>()].item<int64_t>()});
      logits[i][task->labels().id(says.at(word), "")] = 5;
    }
    return logits;
  });
  EvaluateOptions options;
  options.metrics = task->metrics().all;
  const auto result = task->evaluate(model, options, {});
  CHECK(result.metrics.at("accuracy") == Approx(3.0 / 6));
  // gold: PER 0-1, LOC 3; PER 0. found: PER 0-1, LOC 2; PER 0, LOC 1.
  CHECK(result.metrics.at("entity_precision") == Approx(2.0 / 4));
  CHECK(result.metrics.at("entity_recall") == Approx(2.0 / 3));
  CHECK(result.metrics.at("entity_f1") == Approx(4.0 / 7));
  // words that are not O: gold 4, found 5, right 3
  CHECK(result.metrics.at("token_f1") == Approx(2 * 3.0 / (4 + 5)));
  CHECK(result.hypotheses.at(0) == "B-PER I-PER B-LOC O");
  CHECK(task->evaluate(model, {}, {}).metrics.size() == 4);
}

TEST_CASE("of several tags of a word the first is taken, where the spec says what is between them", "[tagging]") {
  Scratch scratch;
  write_text(scratch / "x.conll", "a\tB-PER,B-LOC\nb\tO\n");
  const auto labels = [&](const std::string& more) {
    return make_task_as<Tagging>(R"({"type": "tagging", "tokenizer": {"type": "word"}, "data": {"type": "columns", )" +
                                     more + same_files("x.conll") + "}}",
                                 scratch.path.string())
        ->labels()
        .file();
  };
  CHECK(labels("") == "B-PER,B-LOC\nO\n");
  CHECK(labels(R"("separator": ",", )") == "B-PER\nO\n");
}

TEST_CASE("a span is asked as the places of its first and last piece", "[span]") {
  Scratch scratch;
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines +=
        R"({"question": "who sleeps?", "context": "The \u00e4lter cats sleep, he said.", "answer": "\u00e4lter cats", "answer_start": 4})"
        "\n";
  lines += R"({"question": "", "context": "cats sleep", "answer": "leep", "answer_start": 6})"
           "\n";
  write_text(scratch / "x.jsonl", lines);
  const auto task = make_task_as<SpanTask>(
      R"({"type": "span", "tokenizer": {"type": "bpe", "vocabulary": 26}, "data": {"type": "jsonl", )" +
          same_files("x.jsonl") + "}}",
      scratch.path.string());
  const auto tokenizer = tokenizer_of(*task);
  const auto batch = task->batch("test", {0, 20}, torch::kCPU);
  CHECK_FALSE(batch.smooth);
  CHECK(batch.tokens == 4);
  const auto places = numbers_of(batch.targets_N);
  const auto said = [&](int64_t b, int64_t first, int64_t last) {
    return tokenizer.decode(numbers_of(batch.inputs.target_BT[b].narrow(0, first, last - first + 1)));
  };
  CHECK(said(0, places[0], places[1]) == "älter cats");
  CHECK(said(1, places[2], places[3]) == "sleep");  // whole words
  CHECK(said(0, 0, places[0] - 1) == "who sleeps ? The");
  const auto ids = numbers_of(batch.inputs.target_BT[0]);
  CHECK(ids[0] == tokenizer.bos_id());
  CHECK(std::count(ids.begin(), ids.end(), tokenizer.eos_id()) == 2);
  CHECK(numbers_of(batch.inputs.target_BT[1])[1] == tokenizer.eos_id());  // no question

  // Points at the right places, but a word too far in the last example.
  PlannedModel model([&](const Batch& read, const Tensor&) {
    auto logits = torch::zeros({2 * read.target_BT.size(0), read.target_BT.size(1)});
    for (int64_t b = 0; b < read.target_BT.size(0); ++b) {
      const bool last = read.target_BT[b][1].item<int64_t>() == tokenizer.eos_id();
      logits[2 * b][last ? places[2] - 1 : places[0]] = 4;
      logits[2 * b + 1][last ? places[3] : places[1]] = 4;
      logits[2 * b + 1][0] = 9;  // not in the context: must not be taken
    }
    return logits;
  });
  EvaluateOptions options;
  options.metrics = {"exact_match", "f1"};
  const auto result = task->evaluate(model, options, {});
  CHECK(result.hypotheses.at(0) == "älter cats");
  CHECK(result.hypotheses.at(20) == "cats sleep");
  CHECK(result.metrics.at("exact_match") == Approx(20.0 / 21));
  CHECK(result.metrics.at("f1") == Approx(20.0 / 21));  // "leep" is no word of "cats sleep"
}

TEST_CASE("the best span is the largest sum in order, among allowed places", "[span]") {
  const std::vector<bool> all(4, true);
  CHECK(best_span({0, 1, 0, 3}, {2, 0, 1, 0}, all, 4) == std::pair<int64_t, int64_t>{3, 3});
  CHECK(best_span({1, 5, 0, 0}, {9, 0, 0, 3}, all, 4) == std::pair<int64_t, int64_t>{0, 0});  // 10, before 5 + 3
  CHECK(best_span({1, 5, 0, 0}, {2, 0, 0, 3}, all, 4) == std::pair<int64_t, int64_t>{1, 3});
  CHECK(best_span({1, 5, 0, 0}, {2, 0, 0, 3}, all, 2) == std::pair<int64_t, int64_t>{1, 1});  // 1-3 is too long
  CHECK(best_span({1, 5, 0, 0}, {2, 0, 0, 3}, {true, false, true, true}, 4) == std::pair<int64_t, int64_t>{0, 3});
}

TEST_CASE("answers that are not where they should be are errors with their place", "[span]") {
  Scratch scratch;
  const auto message = [&](const std::string& line) {
    write_text(scratch / "x.jsonl", line + "\n");
    try {
      make_task(R"({"type": "span", "tokenizer": {"type": "word"}, "data": {"type": "jsonl", )" +
                    same_files("x.jsonl") + "}}",
                scratch.path.string());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const auto place = (scratch / "x.jsonl").string() + ":1: ";
  CHECK(message(R"({"question": "q", "context": "a b", "answer": "b", "answer_start": 1})") ==
        place + "expected the answer \"b\" at character 1 of the context, got \" \"; places count characters from 0");
  CHECK(message(R"({"question": "q", "context": "a b", "answer": "b", "answer_start": 7})") ==
        place + "expected the answer \"b\" at character 7 of the context, got \"\"; places count characters from 0");
  CHECK(message(R"({"question": "q", "context": "a b", "answer": "", "answer_start": 0})") ==
        place + "field \"answer\": expected an answer, got none");
  CHECK_THAT(message(R"({"question": "q", "context": "a b", "answer": "b"})"),
             ContainsSubstring("expected a field \"answer_start\" with a text"));
}

TEST_CASE("tags and spans of the grammar are its gold", "[tagging][span]") {
  const std::string small = R"("data": {"type": "grammar", "train": 60, "valid": 10, "test": 10})";
  const auto tags = make_task_as<Tagging>(R"({"type": "tagging", "tokenizer": {"type": "word"}, )" + small + "}");
  CHECK_THAT(tags->labels().file(), ContainsSubstring("NOUN\n"));
  CHECK(tags->lengths("test").second.size() == 10);
  const auto spans = make_task_as<SpanTask>(R"({"type": "span", "tokenizer": {"type": "word"}, )" + small + "}");
  const auto tokenizer = tokenizer_of(*spans);
  const auto batch = spans->batch("train", {0}, torch::kCPU);
  const auto places = numbers_of(batch.targets_N);
  CHECK(places[0] > 3);
  CHECK(places[1] >= places[0]);
  CHECK(places[1] < batch.inputs.target_BT.size(1) - 1);
}
