#include <fstream>
#include <set>

#include "modules/base/error.h"
#include "src/data/labelled/conll.h"
#include "src/data/labelled/labels.h"
#include "src/data/labelled/records.h"
#include "src/data/labelled/split_files.h"
#include "src/data/labelled/words.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

struct LabelledFile {
  explicit LabelledFile(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string path() const { return (scratch / "x.txt").string(); }
  Scratch scratch;
};

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("JSON lines give texts by key, blank lines passed over", "[labelled]") {
  const LabelledFile file(
      "{\"text\": \"a \\u00e4\", \"label\": 3, \"ok\": true, \"list\": [1], \"none\": null}\r\n\n{\"text\": \"b\", "
      "\"label\": -1.5}");
  const auto records = read_jsonl(file.path());
  REQUIRE(records.size() == 2);
  CHECK(records[0].text("text") == "a ä");
  CHECK(records[0].text("label") == "3");
  CHECK(records[0].text("ok") == "true");
  CHECK(records[0].number("label") == 3);
  CHECK(records[1].place() == file.path() + ":3");
  CHECK_THROWS_WITH(records[0].text("none"),
                    file.path() + ":1: expected a field \"none\" with a text, got: label, ok, text");
  CHECK_THROWS_WITH(records[1].number("label"),
                    file.path() + ":3: field \"label\": expected a whole number of at least 0, got \"-1.5\"");
}

TEST_CASE("wrong lines of labelled files are errors with their place", "[labelled]") {
  struct Row {
    std::string bytes, message;
    std::function<void(const std::string&)> read;
  };
  const auto jsonl = [](const std::string& path) { read_jsonl(path); };
  const auto tsv = [](const std::string& path) { read_tsv(path, true); };
  const auto conllu = [](const std::string& path) { read_conllu(path, "upos"); };
  const auto columns = [](const std::string& path) { read_columns(path, 1, 2); };
  const std::string word = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n";
  const std::vector<Row> rows{
      {"{\"a\": 1}\n{\"a\": 1,}\n", ":2:9: expected a JSON object, got text that is not JSON", jsonl},
      {"[1]\n", ":1: expected a JSON object, got array", jsonl},
      {"{\"a\": 1e999}\n", ":1: expected numbers that a double holds, got a larger one", jsonl},
      {"\n\n", ": expected a JSON object a line, got none", jsonl},
      {"{\"a\": \"\xFF\"}\n", ":1: expected UTF-8 text, got bytes that are not UTF-8", jsonl},
      {"a\tb\n1\t2\n1\t2\t3\n", ":3: expected 2 columns between tabs, got 3", tsv},
      {"a\tb\n", ": expected rows of columns between tabs, got none", tsv},
      {std::string("a\tb\nc\t\0\n", 8), ":2: expected UTF-8 text, got a NUL byte", tsv},
      {"a\tb\nc\t" + std::string(1 << 20, 'd') + "\n",
       ":2: expected UTF-8 text, got a line of more than 1,048,576 bytes", tsv},
      {word + "2\ta\ta\tX\n", ":2: expected the 10 columns of CoNLL-U between tabs, got 4", conllu},
      {word + "3\ta\ta\tX\t_\t_\t0\troot\t_\t_\n", ":2: expected word 2 of the sentence, got \"3\"", conllu},
      {"# text = a\n\n", ": expected sentences, a word a line, got none", conllu},
      {"a O\nb\n", ":2: expected a column 2, got 1 column between tabs or blanks", columns},
  };
  for (const auto& row : rows) {
    const LabelledFile file(row.bytes);
    INFO(row.message);
    CHECK_THROWS_WITH(row.read(file.path()), file.path() + row.message);
  }
  CHECK_THROWS_WITH(Labels({"a", "b\nc"}), "expected labels of one line, got \"b\\nc\"");
  CHECK_THROWS_WITH(read_jsonl("/nowhere/x"), ContainsSubstring("/nowhere/x: cannot be read"));
}

TEST_CASE("columns between tabs have the names of the header, or numbers", "[labelled]") {
  const LabelledFile file("\xEF\xBB\xBFtext\tlabel\na \"quoted\tx\n\nb\t\n");
  const auto named = read_tsv(file.path(), true);
  REQUIRE(named.size() == 2);
  CHECK(named[0].text("text") == "a \"quoted");
  CHECK(named[1].text("label").empty());
  const auto numbered = read_tsv(file.path(), false);
  REQUIRE(numbered.size() == 3);
  CHECK(numbered[0].text("1") == "text");
  CHECK(numbered[1].text("2") == "x");
}

TEST_CASE("CoNLL-U gives syntactic words and a column, sentence by sentence", "[labelled]") {
  const LabelledFile file(
      "# sent_id = 1\n# text = im "
      "Haus\n1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n1\tin\tin\tADP\t_\t_\t3\tcase\t_\t_\n2\tdem\tder\tDET\t_\t_\t3\tdet\t_\t_"
      "\n"
      "3\tHaus\tHaus\tNOUN\t_\t_\t0\troot\t_\t_\n3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n\n1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_"
      "\n");
  const auto sentences = read_conllu(file.path(), "upos");
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].words == Words{"in", "dem", "Haus"});
  CHECK(sentences[0].tags == Words{"ADP", "DET", "NOUN"});
  CHECK(sentences[0].place == file.path() + ":4");
  CHECK(sentences[1].words == Words{"#"});
  CHECK(read_conllu(file.path(), "deprel")[0].tags == Words{"case", "det", "root"});
}

TEST_CASE("two columns give words and tags; a line of white space ends a sentence", "[labelled]") {
  const LabelledFile file("-DOCSTART- O\n\n@paul\tO\nNew York\tB-location\n\t\nx\tO\n");
  const auto sentences = read_columns(file.path(), 1, -1);
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].words == Words{"@paul", "New York"});
  CHECK(sentences[0].tags == Words{"O", "B-location"});
  const LabelledFile blanks("EU NNP I-NP B-ORG\nrejects  VBZ I-VP O\n");
  CHECK(read_columns(blanks.path(), 1, -1)[0].tags == Words{"B-ORG", "O"});
  CHECK(read_columns(blanks.path(), 1, 2)[0].tags == Words{"NNP", "VBZ"});
}

TEST_CASE("a text is cut into words and marks, each with its place", "[labelled]") {
  const std::string text = "Bowie's  wärmer, \u201Cno\u201D.";
  Words words;
  for (const auto& word : split_words(text)) {
    words.push_back(word.text);
    CHECK(part_of_text(text, word.start, word.end) == word.text);
  }
  CHECK(words == Words{"Bowie", "'", "s", "wärmer", ",", "\u201C", "no", "\u201D", "."});
  CHECK(split_words(" \t").empty());
}

TEST_CASE("labels have numbers in order, and a file", "[labelled]") {
  const Labels labels({"b", "a", "B-x"});
  CHECK(labels.id("B-x", "here") == 0);
  CHECK(labels.name(2) == "b");
  CHECK(labels.file() == "B-x\na\nb\n");
  CHECK(Labels::from_file(labels.file()).id("b", "") == 2);
  CHECK_THROWS_WITH(labels.id("c", "x:3"), ContainsSubstring("x:3: unknown label \"c\""));
}

TEST_CASE("parts without a file are drawn from the training file, each example in one part", "[labelled]") {
  Scratch scratch;
  std::ofstream(scratch / "train.txt") << "";
  std::ofstream(scratch / "test.txt") << "";
  const std::function<std::vector<int>(const std::string&)> read = [](const std::string& path) {
    std::vector<int> all;
    const bool train = path.find("train") != std::string::npos;
    for (int i = 0; i < (train ? 100 : 3); ++i) all.push_back(train ? i : 1000 + i);
    return all;
  };
  SplitFiles files;
  files.train = "train.txt";
  files.valid_share = 0.2;
  auto parts = read_splits(files, scratch.path.string(), read);
  CHECK(parts["train"].size() == 70);
  CHECK(parts["valid"].size() == 20);
  CHECK(parts["test"].size() == 10);
  std::set<int> all;
  for (const auto& [name, part] : parts) all.insert(part.begin(), part.end());
  CHECK(all.size() == 100);
  CHECK(read_splits(files, scratch.path.string(), read) == parts);
  files.test = "test.txt";
  parts = read_splits(files, scratch.path.string(), read);
  CHECK(parts["test"] == std::vector<int>{1000, 1001, 1002});
  CHECK(parts["train"].size() == 80);
  files.split_seed = 2;
  CHECK(read_splits(files, scratch.path.string(), read)["valid"] != parts["valid"]);
  files.test.reset();
  files.test_share = 0.001;
  CHECK_THROWS_WITH(read_splits(files, scratch.path.string(), read),
                    "train.txt: 100 examples are too few to draw a part \"test\" from");
}
