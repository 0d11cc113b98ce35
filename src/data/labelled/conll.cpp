#include "src/data/labelled/conll.h"

#include <algorithm>
#include <functional>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/text/lines.h"

namespace headlab {
namespace {

std::vector<std::string> split_at_blanks(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t start = line.find_first_not_of(' '); start != std::string::npos;) {
    const auto end = std::min(line.find(' ', start), line.size());
    cells.push_back(line.substr(start, end - start));
    start = line.find_first_not_of(' ', end);
  }
  return cells;
}

// Calls `see` with each line that has something, and ends a sentence at each blank one.
std::vector<TaggedSentence> read_sentences(
    const std::string& path, const std::function<void(const std::string&, const std::string&, TaggedSentence&)>& see) {
  LineReader reader(path);
  std::vector<TaggedSentence> sentences;
  TaggedSentence sentence;
  const auto end = [&] {
    if (!sentence.words.empty()) sentences.push_back(std::move(sentence));
    sentence = {};
  };
  for (std::string line; reader.next(line);) {
    reader.refuse_fault();  // annotation is never left out in silence
    if (reader.fault() == LineFault::empty) {
      end();
      continue;
    }
    const auto place = path + ":" + std::to_string(reader.counts().lines);
    if (sentence.words.empty()) sentence.place = place;
    see(line, place, sentence);
  }
  end();
  if (sentences.empty()) throw FileError(path + ": expected sentences, a word a line, got none");
  return sentences;
}

}  // namespace

const std::vector<std::string>& conllu_columns() {
  static const std::vector<std::string> names{"id",    "form", "lemma",  "upos", "xpos",
                                              "feats", "head", "deprel", "deps", "misc"};
  return names;
}

std::vector<std::string> split_at_tabs(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t start = 0;;) {
    const auto end = line.find('\t', start);
    cells.push_back(line.substr(start, end == std::string::npos ? end : end - start));
    if (end == std::string::npos) return cells;
    start = end + 1;
  }
}

std::vector<TaggedSentence> read_conllu(const std::string& path, const std::string& column) {
  const auto& names = conllu_columns();
  const auto wanted = static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin());
  if (wanted == names.size()) throw UsageError(unknown_name("column", column, names));
  return read_sentences(path, [&](const std::string& line, const std::string& place, TaggedSentence& sentence) {
    if (line[0] == '#') return;
    const auto cells = split_at_tabs(line);
    if (cells.size() != names.size())
      throw FileError(place + ": expected the 10 columns of CoNLL-U between tabs, got " + std::to_string(cells.size()));
    if (cells[0].find_first_of("-.") != std::string::npos) return;  // a multiword token, an empty node
    if (cells[0] != std::to_string(sentence.words.size() + 1))
      throw FileError(place + ": expected word " + std::to_string(sentence.words.size() + 1) +
                      " of the sentence, got " + in_quotes(cells[0]));
    sentence.words.push_back(cells[1]);
    sentence.tags.push_back(cells[wanted]);
  });
}

std::vector<TaggedSentence> read_columns(const std::string& path, int64_t word_column, int64_t tag_column) {
  return read_sentences(path, [&](const std::string& line, const std::string& place, TaggedSentence& sentence) {
    const auto cells = line.find('\t') == std::string::npos ? split_at_blanks(line) : split_at_tabs(line);
    if (cells[0] == "-DOCSTART-") return;
    const auto cell = [&](int64_t column) {
      const auto count = static_cast<int64_t>(cells.size());
      const auto index = column > 0 ? column - 1 : count + column;
      if (index < 0 || index >= count)
        throw FileError(place + ": expected a column " + std::to_string(column) + ", got " + std::to_string(count) +
                        (count == 1 ? " column" : " columns") + " between tabs or blanks");
      return cells[static_cast<std::size_t>(index)];
    };
    sentence.words.push_back(cell(word_column));
    sentence.tags.push_back(cell(tag_column));
  });
}

}  // namespace headlab
