#pragma once

#include <string>
#include <vector>

namespace headlab {

/// The words of a sentence, each with its tag, and where its first word stands ("x.conllu:12").
struct TaggedSentence {
  std::vector<std::string> words, tags;
  std::string place;
};

/// Words and one column of a CoNLL-U file: form, lemma, upos, xpos, feats, head, deprel, deps or misc. Words are
/// syntactic words: lines of multiword tokens (3-4) and of empty nodes (3.1) are passed over. Throws FileError for a
/// line that has not ten columns, or whose number is not the next one.
std::vector<TaggedSentence> read_conllu(const std::string& path, const std::string& column);

/// Words and tags of a file with a word a line, columns between tabs (or, in lines without one, between blanks),
/// sentences between blank lines. Columns count from 1; -1 is the last. Lines of -DOCSTART- are passed over. Throws
/// FileError for a line that lacks a column.
std::vector<TaggedSentence> read_columns(const std::string& path, int64_t word_column, int64_t tag_column);

/// The columns of conllu by name; the position is the column's.
const std::vector<std::string>& conllu_columns();

/// "a\tb" -> {"a", "b"}; n tabs give n + 1 texts.
std::vector<std::string> split_at_tabs(const std::string& line);

}  // namespace headlab
