#include "src/data/plain_text.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "modules/base/error.h"
#include "src/data/text_codec.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

struct TextFile {
  explicit TextFile(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string path() const { return (scratch / "x.txt").string(); }
  Scratch scratch;
};

using Ids = std::vector<int64_t>;

}  // namespace

TEST_CASE("plain text keeps its empty lines, and counts words as WikiText does", "[text]") {
  const TextFile file("\xEF\xBB\xBF = A  title = \r\n \n\nw\u00e4r\u3000x\nlast");
  const auto text = PlainText::read_file(file.path(), KeepLines::all);
  CHECK(text.lines == std::vector<std::string>{" = A  title = ", " ", "", "wär\u3000x", "last"});
  CHECK(text.crlf == 1);
  CHECK(text.words_and_line_ends() == 4 + 2 + 1 + 5);
  CHECK(text.characters() == 14 + 1 + 0 + 5 + 4 + 5);
  CHECK(text.text() == " = A  title = \n \n\nwär\u3000x\nlast\n");
}

TEST_CASE("lines that are no text are left out of training and counted, and refused elsewhere", "[text]") {
  const TextFile file(std::string("a\n\xFF\nb\0c\nd\n", 10));
  const auto text = PlainText::read_file(file.path(), KeepLines::usable);
  CHECK(text.lines == std::vector<std::string>{"a", "d"});
  CHECK(text.not_utf8 == 1);
  CHECK(text.nul == 1);
  CHECK_THROWS_WITH(PlainText::read_file(file.path(), KeepLines::all),
                    file.path() + ":2: expected UTF-8 text, got bytes that are not UTF-8");
  const TextFile none("\n \n");
  CHECK_THROWS_WITH(PlainText::read_file(none.path(), KeepLines::all),
                    none.path() + ": expected text, got 2 lines of which none has any");
}

TEST_CASE("a book that is one line is read to its end", "[text]") {
  const std::string book((1 << 21) + 5, 'a');  // twice what a line of parallel text may have
  const TextFile file(book);
  CHECK(PlainText::read_file(file.path(), KeepLines::usable).lines == std::vector<std::string>{book});
}

TEST_CASE("a text is cut between lines, or at a character, and nothing is lost", "[text]") {
  PlainText whole;
  for (int i = 0; i < 20; ++i)
    whole.lines.push_back("line " + std::to_string(10 + i));  // 8 characters each with its end
  const auto lines = cut_text(whole, 0.1, 0.2, "line");
  CHECK(lines.train.lines.size() == 14);
  CHECK(lines.valid.lines == std::vector<std::string>{"line 24", "line 25"});
  CHECK(lines.test.lines.size() == 4);
  CHECK(lines.train.text() + lines.valid.text() + lines.test.text() == whole.text());
  const auto between = cut_text(whole, 0.13, 0.2, "line");  // 107.2 of 160 characters: within the 14th line
  CHECK(between.train.lines.size() == 13);
  CHECK(between.train.text() + between.valid.text() + between.test.text() == whole.text());
  const auto anywhere = cut_text(whole, 0.13, 0.2, "character");
  CHECK(anywhere.train.lines.size() == 14);
  CHECK(anywhere.train.lines.back() == "lin");
  CHECK(anywhere.valid.lines.front() == "e 23");
  CHECK_THROWS_WITH(cut_text(whole, 0.001, 0.5, "line"), ContainsSubstring("leave nothing for valid"));
}

TEST_CASE("characters are ids as they are, white space and line ends too", "[text]") {
  const std::string text = "Ab \tä\n\n  ﬁ\n";
  const auto codec = characters_codec(text);
  CHECK(codec->size() == 4 + 7);  // A b space tab ä line end, and the ligature, which no normalisation splits
  CHECK(codec->decode(codec->encode(text)) == text);
  CHECK(codec->encode("\n\tA") == Ids{5, 4, 7});  // by code point
  CHECK(codec->encode("z") == Ids{codec->unk_id()});
  CHECK(codec->decode({codec->bos_id(), 7, codec->unk_id(), codec->pad_id()}) == "A\u2047");
  const auto again = codec_from_files("characters", "bpe", codec->files());
  CHECK(again->encode(text) == codec->encode(text));
  CHECK(codec_from_files("characters", "bpe", {}) == nullptr);
}

TEST_CASE("bytes need no vocabulary and know everything", "[text]") {
  const auto codec = bytes_codec();
  CHECK(codec->size() == 260);
  CHECK(codec->encode("ä\n") == Ids{4 + 0xC3, 4 + 0xA4, 4 + 10});
  const std::string text = "any\u3042 \r\n";
  CHECK(codec->decode(codec->encode(text)) == text);
}

TEST_CASE("pieces are of a line, whose end is eos", "[text]") {
  std::vector<std::string> lines{"the cat sat", "the mat", "a cat on a mat"};
  TokenizerOptions options;
  options.type = "word";
  const auto tokenizer = Tokenizer::train(lines, options, 1);
  const auto codec = pieces_codec(tokenizer, "word");
  const auto cat = tokenizer.encode("the cat"), mat = tokenizer.encode("a mat");
  auto expected = cat;
  expected.push_back(tokenizer.eos_id());
  expected.push_back(tokenizer.eos_id());
  expected.insert(expected.end(), mat.begin(), mat.end());
  CHECK(codec->encode("the   cat \n\na mat") == expected);
  CHECK(codec->decode(expected) == "the cat\n\na mat");
  expected.push_back(tokenizer.eos_id());
  CHECK(codec->encode("the cat\n\na mat\n") == expected);
  CHECK(codec->decode(expected) == "the cat\n\na mat\n");
  CHECK(codec_from_files("pieces", "word", codec->files())->encode("the cat") == cat);
}

TEST_CASE("the words of WikiText-2 are the numbers that its paper counts", "[text]") {
  const char* root = std::getenv("HEADLAB_DATA");
  const auto folder = std::filesystem::path(root ? root : "") / "lm-wikitext2-valid-test";
  if (!root || !std::filesystem::exists(folder)) return;
  CHECK(PlainText::read_file((folder / "valid.txt").string(), KeepLines::all).words_and_line_ends() == 217646);
  CHECK(PlainText::read_file((folder / "test.txt").string(), KeepLines::all).words_and_line_ends() == 245569);
}
