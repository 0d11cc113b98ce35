#include "src/data/parallel_text.h"

#include <fstream>

#include "modules/base/error.h"
#include "src/data/tokenizers.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

using Lines = std::vector<std::string>;

struct Files {
  Files(const std::string& left, const std::string& right) {
    std::ofstream(source(), std::ios::binary) << left;
    std::ofstream(target(), std::ios::binary) << right;
  }
  std::string source() const { return (scratch / "a.en").string(); }
  std::string target() const { return (scratch / "a.de").string(); }
  Scratch scratch;
};

}  // namespace

TEST_CASE("unequal numbers of lines are an error with both", "[data]") {
  const Files files("1\n2\n3\n", "1\n2\n");
  CHECK_THROWS_WITH(ParallelText::read(files.source(), files.target()),
                    files.source() + " has 3 lines, " + files.target() + " has 2; expected translations line by line");
  CHECK_THROWS_WITH(ParallelText::read(files.target(), files.source()), ContainsSubstring("has 2 lines, "));
}

TEST_CASE("pairs with an unusable side are skipped and counted", "[data]") {
  const Files files(std::string("a\n\nb\r\n\xFF\nc\nd\0\n", 13), "A\nx\nB\nx\n \t\nx\n");
  const ParallelText text = ParallelText::read(files.source(), files.target());
  CHECK(text.source == Lines{"a", "b"});
  CHECK(text.target == Lines{"A", "B"});
  CHECK(text.line == std::vector<int64_t>{0, 2});
  CHECK(text.report.lines == 6);
  CHECK(text.report.kept() == 2);
  CHECK(text.report.crlf == 1);
  CHECK(text.report.text() == "4 lines skipped (2 empty, 0 too long, 1 not UTF-8, 1 with NUL)");
}

TEST_CASE("text to evaluate keeps every line, or is refused with the line", "[data]") {
  const Files files("a\n\nb\n", "\nx\nB\n");
  CHECK(ParallelText::read(files.source(), files.target(), KeepLines::all).source == Lines{"a", "", "b"});
  const Files bad("a\nb\n", "a\n\xFF\n");
  CHECK_THROWS_WITH(ParallelText::read(bad.source(), bad.target(), KeepLines::all),
                    bad.target() + ":2: expected UTF-8 text, got bytes that are not UTF-8");
}

TEST_CASE("files without a usable pair are refused", "[data]") {
  const Files none("", ""), empty("\n\n", "a\nb\n");
  CHECK_THROWS_WITH(ParallelText::read(none.source(), none.target()), ContainsSubstring("got empty files"));
  CHECK_THROWS_WITH(ParallelText::read(empty.source(), empty.target()),
                    ContainsSubstring("none that is usable: 2 lines skipped (2 empty, 0 too long)"));
}

TEST_CASE("pairs longer than the limit are left out and counted", "[data]") {
  const Files files("a b\na b c d e f\nb\nc\n", "x\ny\nx y x y x y\ny\n");
  ParallelText text = ParallelText::read(files.source(), files.target());
  TokenizerOptions options;
  options.type = "word";
  options.joint = false;
  const TokenizerPair tokenizers = make_tokenizers(options, text.source, text.target, ".", 1);
  const EncodedPairs pairs = encode_pairs(text, tokenizers.source, tokenizers.target, 5);
  CHECK(pairs.pair == std::vector<int64_t>{0, 3});
  CHECK(pairs.source_lengths() == std::vector<int64_t>{2, 1});
  CHECK(pairs.target_lengths() == std::vector<int64_t>{1, 1});
  CHECK(text.report.text() == "2 lines skipped (0 empty, 2 too long)");
  CHECK(text.report.kept() == 2);
  ParallelText again = ParallelText::read(files.source(), files.target());
  CHECK(encode_pairs(again, tokenizers.source, tokenizers.target, 0).pair.size() == 4);  // 0: no limit
  ParallelText long_only = text;
  long_only.source = long_only.target = {"a b c d e f"};
  CHECK_THROWS_WITH(encode_pairs(long_only, tokenizers.source, tokenizers.target, 5),
                    ContainsSubstring("expected at least one pair of at most 5 tokens, got none"));
}

TEST_CASE("joint tokenizers are one model, separate ones are two", "[data]") {
  const Lines source = {"aa ab ba bb aa ab", "ab ba"}, target = {"xx xy yx yy xx xy", "xy yx"};
  TokenizerOptions options;
  options.type = "char";
  const TokenizerPair joint = make_tokenizers(options, source, target, ".", 1);
  CHECK(joint.joint);
  CHECK(joint.source.serialized() == joint.target.serialized());
  CHECK(joint.source.decode(joint.source.encode("xy")) == "xy");
  options.joint = false;
  const TokenizerPair two = make_tokenizers(options, source, target, ".", 1);
  CHECK_FALSE(two.joint);
  CHECK(two.source.decode(two.source.encode("ab")) == "ab");
  CHECK_THAT(two.source.decode(two.source.encode("xy")), ContainsSubstring("\u2047"));

  Scratch scratch;
  std::ofstream(scratch / "s.model", std::ios::binary) << two.source.serialized();
  std::ofstream(scratch / "t.model", std::ios::binary) << two.target.serialized();
  options.source_model = "s.model";
  options.target_model = "t.model";
  const TokenizerPair loaded = make_tokenizers(options, {}, {}, scratch.path.string(), 1);
  CHECK(loaded.source.serialized() == two.source.serialized());
  CHECK(loaded.target.serialized() == two.target.serialized());
  options.source_model.reset();
  options.target_model.reset();
  options.model = "t.model";
  CHECK(make_tokenizers(options, {}, {}, scratch.path.string(), 1).joint);
}
