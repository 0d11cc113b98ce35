#include "src/data/plain_text.h"

#include <algorithm>
#include <cmath>

#include "modules/base/error.h"
#include "src/text/lines.h"
#include "src/text/unicode.h"

namespace headlab {

PlainText PlainText::read_file(const std::string& path, KeepLines keep) {
  LineReader reader(path, any_length);
  PlainText text;
  bool any = false;
  for (std::string line; reader.next(line);) {
    if (keep == KeepLines::all) reader.refuse_fault();
    const auto fault = reader.fault();
    if (fault == LineFault::nul || fault == LineFault::not_utf8) continue;
    any = any || fault != LineFault::empty;
    text.lines.push_back(line);
  }
  text.read = reader.counts().lines;
  text.not_utf8 = reader.counts().not_utf8;
  text.nul = reader.counts().nul;
  text.crlf = reader.counts().crlf;
  if (!any)
    throw FileError(path + ": expected text, got " + std::to_string(text.read) + " lines of which none has any");
  return text;
}

std::string PlainText::text() const {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

int64_t PlainText::words_and_line_ends() const {
  int64_t count = 0;
  for (const auto& line : lines) {
    bool inside = false;
    for (const char32_t c : decode_utf8(line)) {
      const bool space = is_space(c);
      count += !space && !inside;
      inside = !space;
    }
    ++count;  // the line's end
  }
  return count;
}

int64_t PlainText::characters() const {
  int64_t count = 0;
  for (const auto& line : lines) count += static_cast<int64_t>(decode_utf8(line).size()) + 1;
  return count;
}

namespace {

// The lines of a text of code points; a last line without LF is a line.
PlainText lines_of(std::u32string_view text) {
  PlainText part;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find(U'\n', start), text.size());
    part.lines.push_back(encode_utf8(text.substr(start, end - start)));
    start = end + 1;
  }
  part.read = static_cast<int64_t>(part.lines.size());
  return part;
}

}  // namespace

CutText cut_text(const PlainText& whole, double valid, double test, const std::string& at) {
  const auto text = decode_utf8(whole.text());
  const auto place = [&](double share) {
    auto cut = static_cast<std::size_t>(std::llround(static_cast<double>(text.size()) * share));
    if (at == "line") {
      const auto before = cut == 0 ? std::u32string::npos : text.rfind(U'\n', cut - 1);
      cut = before == std::u32string::npos ? 0 : before + 1;
    }
    return cut;
  };
  const auto first = place(1 - valid - test), second = place(1 - test);
  const std::u32string_view all(text);
  CutText parts{lines_of(all.substr(0, first)), lines_of(all.substr(first, second - first)),
                lines_of(all.substr(second))};
  parts.train.not_utf8 = whole.not_utf8;
  parts.train.nul = whole.nul;
  parts.train.crlf = whole.crlf;
  const auto require = [&](const PlainText& part, const char* name, double share) {
    if (part.lines.empty())
      throw Error(std::string("the text is too short to be cut: ") + std::to_string(share) + " of its " +
                  std::to_string(text.size()) + " characters leave nothing for " + name);
  };
  require(parts.train, "train", 1 - valid - test);
  require(parts.valid, "valid", valid);
  require(parts.test, "test", test);
  return parts;
}

}  // namespace headlab
