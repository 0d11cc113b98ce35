#include <algorithm>

#include "modules/base/error.h"
#include "src/data/labelled/conll.h"
#include "src/data/labelled/labels.h"
#include "src/data/labelled/records.h"
#include "src/data/labelled/words.h"
#include "src/data/plain_text.h"
#include "src/text/lines.h"
#include "src/text/unicode.h"
#include "tools/fuzz/memory_file.h"
#include "tools/fuzz/targets.h"

namespace headlab::fuzz {
namespace {

constexpr const char* of_annotation = "annotation";

/// What `read` gives, if it does not refuse the file as one may be refused.
template <class Read>
auto accepted(const Read& read) {
  decltype(read()) rows;
  may_refuse(of_annotation, [&] {
    rows = read();
    if (rows.empty()) broken(of_annotation, "a file without a row was accepted");
  });
  return rows;
}

void check_text(const std::string& text) {
  if (!valid_utf8(text)) broken(of_annotation, "a text that is not UTF-8 was accepted");
}

/// Sentences of lines that are there, in order, each word with its tag; `rows`: most that the file can have.
void check_sentences(const std::vector<TaggedSentence>& sentences, int64_t rows) {
  int64_t words = 0;
  for (const auto& sentence : sentences) {
    if (sentence.words.empty() || sentence.words.size() != sentence.tags.size())
      broken(of_annotation, "words without a tag each");
    words += static_cast<int64_t>(sentence.words.size());
    for (const auto& word : sentence.words) check_text(word);
    for (const auto& tag : sentence.tags) check_text(tag);
  }
  if (words > rows) broken(of_annotation, "more words than lines");
}

void check_record(const Record& record) {
  for (const auto* field : {"text", "label", "1", "start"}) {
    try {
      check_text(record.text(field));
      if (record.number(field) < 0) broken(of_annotation, "a number below 0");
    } catch (const FileError& error) {
      check_message(of_annotation, error.what());
    }
  }
}

/// The words of a text are what stands where they say, in order, and nothing but white space lies between them.
void check_words(const std::string& text) {
  const auto all = decode_utf8(text);
  int64_t at = 0;
  const auto blank_until = [&](int64_t end) {
    for (; at < end; ++at)
      if (!is_space(all[static_cast<std::size_t>(at)])) broken(of_annotation, "a character of no word");
  };
  for (const auto& word : split_words(text)) {
    if (word.start < at || word.end <= word.start) broken(of_annotation, "words out of order");
    if (part_of_text(text, word.start, word.end) != word.text) broken(of_annotation, "a word that stands elsewhere");
    blank_until(word.start);
    at = word.end;
  }
  blank_until(static_cast<int64_t>(all.size()));
}

void check_labels(const std::set<std::string>& names) {
  try {
    const Labels labels(names);
    const auto again = Labels::from_file(labels.file());
    if (labels.size() != static_cast<int64_t>(names.size()) || again.size() != labels.size())
      broken(of_annotation, "labels that are lost");
    for (const auto& name : names)
      if (again.name(labels.id(name, "x")) != name) broken(of_annotation, "a label that reads back as another");
  } catch (const Error& error) {
    check_message(of_annotation, error.what());
  }
}

void check_plain_text(const std::string& path, const std::vector<std::string>& lines) {
  may_refuse(of_annotation, [&] {
    const auto text = PlainText::read_file(path, KeepLines::usable);
    if (static_cast<int64_t>(text.lines.size()) + text.skipped() != text.read ||
        text.read != static_cast<int64_t>(lines.size()))
      broken(of_annotation, "lines of a text that are not counted");
    int64_t characters = 0;
    for (const auto& line : text.lines) characters += static_cast<int64_t>(decode_utf8(line).size()) + 1;
    if (text.characters() != characters) broken(of_annotation, "characters of a text that are not counted");
    if (text.words_and_line_ends() < static_cast<int64_t>(text.lines.size()))
      broken(of_annotation, "line ends that are not counted");
  });
}

}  // namespace

int fuzz_annotation(const uint8_t* data, std::size_t size) {
  static const MemoryFile file(of_annotation);
  const auto path = file.holding(std::string(reinterpret_cast<const char*>(data), size));
  const auto lines = read_lines(path);
  const auto rows = static_cast<int64_t>(lines.size());
  check_sentences(accepted([&] { return read_conllu(path, "upos"); }), rows);
  std::set<std::string> tags;
  for (const auto& [word, tag] : {std::pair{1, -1}, std::pair{2, 1}}) {
    const auto sentences =
        accepted([&, word_column = word, tag_column = tag] { return read_columns(path, word_column, tag_column); });
    check_sentences(sentences, rows);
    for (const auto& sentence : sentences) tags.insert(sentence.tags.begin(), sentence.tags.end());
  }
  for (const auto& record : accepted([&] { return read_jsonl(path); })) {
    check_record(record);
    try {
      tags.insert(record.text("label"));
    } catch (const FileError&) {  // has none
    }
  }
  for (const bool header : {false, true})
    for (const auto& record : accepted([&] { return read_tsv(path, header); })) check_record(record);
  check_labels(tags);
  check_plain_text(path, lines);
  for (const auto& line : lines) check_words(line);
  return 0;
}

std::vector<std::string> annotation_seeds() {
  return {
      "# text = Dogs do n't.\n1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
      "2\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_\n2.1\te\t_\t_\t_\t_\t_\t_\t_\t_\n3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_"
      "\n\n",
      "-DOCSTART- O\n\nAnna B-PER\nsees O\n\nthe\tO\nHague\tB-LOC\n",
      "{\"text\": \"a \\u00e4\", \"label\": 3, \"start\": 0, \"list\": [1]}\n{\"text\": \"b\", \"label\": \"x\"}\r\n",
      "text\tlabel\tstart\nBowie's (new) song\tgood\t12\n\xC2\xABno\xC2\xBB\tbad\t0\n",
      "",
      "\n"};
}

std::string mutate_annotation(const std::string& input, Random& random) {
  static const std::vector<std::string> words{"\"text\"", "\"label\"", "\"start\"",           "\"a\\nb\"",
                                              "\"1\"",    "-1",        "18446744073709551616"};
  static const std::vector<std::string> pieces{"\t",
                                               "\n",
                                               "\n\n",
                                               " ",
                                               "#",
                                               "1\t",
                                               "2\t",
                                               "1-2\t",
                                               "1.1\t",
                                               "_\t_\t",
                                               "-DOCSTART-",
                                               "\t\t\t\t\t\t\t\t\t",
                                               "\r\n",
                                               "\xC2\xA0",
                                               "\xE3\x80\x82",
                                               "\xF0\x9F\x98\x80",
                                               "\xFF",
                                               std::string(1, '\0'),
                                               "\xEF\xBB\xBF",
                                               "{}",
                                               "\"",
                                               "'s",
                                               "."};
  auto text = input;
  const auto at = static_cast<std::size_t>(random.below(text.size() + 1));
  switch (random.below(4)) {
    case 0:
    case 1:
      return text.insert(at, pieces[static_cast<std::size_t>(random.below(pieces.size()))]);
    case 2:
      return text.find('{') != std::string::npos ? mutate_json(text, words, random)
                                                 : mutate_bytes(text, characters("\t\n #1a\0\xC3\xA4"), random);
    default:
      return mutate_bytes(text, characters("\t\n #12-._aB\0\xC3\xA4\xFF{}\":,"), random);
  }
}

}  // namespace headlab::fuzz
