#include "src/text/unicode.h"

#include "tests/catch.h"

using namespace headlab;

namespace {
std::string lowered(const std::string& text) { return encode_utf8(lower(decode_utf8(text))); }
}  // namespace

TEST_CASE("ill-formed UTF-8 is told from well-formed", "[text]") {
  for (const char* good : {"", "abc", "\u00e4", "\u20ac", "\U0001F600", "\uFEFF", "\U0010FFFF"}) {
    CHECK(valid_utf8(good));
  }
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xC1\x81", "\xE0\x80\xAF", "\xE2\x82", "\xED\xA0\x80",
                          "\xF0\x80\x80\xAF", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF",
                          "a\xFE"
                          "b"}) {
    CAPTURE(bad);
    CHECK_FALSE(valid_utf8(bad));
  }
}

TEST_CASE("text comes back from its code points", "[text]") {
  const std::string text = "a\u00e4\u20ac\U0001F600\U0010FFFF";
  CHECK(decode_utf8(text).size() == 5);
  CHECK(encode_utf8(decode_utf8(text)) == text);
  CHECK(encode_utf8(decode_utf8("a\xFF"
                                "b\xE2\x82")) == "a\uFFFDb\uFFFD\uFFFD");
}

TEST_CASE("lower case follows Unicode", "[text]") {
  CHECK(lowered("\u00c4\u00d6\u00dc STRASSE \u1e9e \u00df") == "\u00e4\u00f6\u00fc strasse \u00df \u00df");
  CHECK(lowered("\u0130I\u0131") == "i\u0307i\u0131");
  CHECK(lowered("\u0401\u0416 \u0531 \U00010400 \u2160 \u01c5") == "\u0451\u0436 \u0561 \U00010428 \u2170 \u01c6");
  CHECK(lowered("\u0100\u0101\u0139\u013a\u0178") == "\u0101\u0101\u013a\u013a\u00ff");
}

TEST_CASE("a capital sigma at the end of a word is a final one", "[text]") {
  CHECK(lowered("\u03a3\u0391\u03a3") == "\u03c3\u03b1\u03c2");
  CHECK(lowered("\u0391\u03a3. \u03a3") == "\u03b1\u03c2. \u03c3");
  CHECK(lowered("\u0391\u03a3'\u0391") == "\u03b1\u03c3'\u03b1");  // the apostrophe is passed over
  CHECK(lowered("1\u03a3") == "1\u03c3");
}
