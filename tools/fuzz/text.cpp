#include <algorithm>

#include "modules/base/error.h"
#include "src/data/parallel_text.h"
#include "src/spec/document.h"
#include "src/text/lines.h"
#include "src/text/unicode.h"
#include "tools/fuzz/memory_file.h"
#include "tools/fuzz/targets.h"

namespace headlab::fuzz {
namespace {

constexpr const char* of_text = "text";

struct Expected {
  std::vector<std::string> lines;
  LineCounts counts;
};

/// The lines by the plainest way.
Expected reference(std::string bytes) {
  Expected expected;
  auto& counts = expected.counts;
  if (bytes.compare(0, 3, "\xEF\xBB\xBF") == 0) {
    counts.byte_order_mark = true;
    bytes.erase(0, 3);
  }
  std::string line;
  const auto take = [&](bool fed) {
    if (fed && !line.empty() && line.back() == '\r') {
      line.pop_back();
      ++counts.crlf;
    }
    ++counts.lines;
    if (line.size() > longest_line) {
      ++counts.too_long;
      line.resize(longest_line);
    } else if (std::count(line.begin(), line.end(), '\0') > 0) {
      ++counts.nul;
    } else if (!is_utf8(line)) {  // the other of the two decoders that headlab has
      ++counts.not_utf8;
    } else {
      const auto text = decode_utf8(line);
      counts.empty += static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_space)) == text.size();
    }
    expected.lines.push_back(line);
    line.clear();
  };
  for (const char c : bytes) {
    if (c == '\n') {
      take(true);
    } else {
      line += c;
    }
  }
  if (!line.empty()) take(false);
  return expected;
}

void check_lines(const std::string& path, const std::string& bytes) {
  LineCounts counts;
  const auto lines = read_lines(path, &counts);
  const auto expected = reference(bytes);
  if (lines != expected.lines) broken(of_text, "other lines than the file has");
  const auto& e = expected.counts;
  if (counts.lines != e.lines || counts.empty != e.empty || counts.nul != e.nul || counts.not_utf8 != e.not_utf8 ||
      counts.too_long != e.too_long || counts.crlf != e.crlf || counts.byte_order_mark != e.byte_order_mark)
    broken(of_text, "other counts than the file has");
}

void check_pairs(const std::string& source, const std::string& target, KeepLines keep, int64_t lines,
                 int64_t target_lines) {
  may_refuse(of_text, [&] {
    const auto text = ParallelText::read(source, target, keep);
    const auto& report = text.report;
    const auto kept = static_cast<int64_t>(text.source.size());
    if (lines != target_lines || report.lines != lines)
      broken(of_text, "a parallel text of unequal files, or of other lines than they have");
    if (static_cast<int64_t>(text.target.size()) != kept || static_cast<int64_t>(text.line.size()) != kept ||
        report.kept() != kept || kept == 0)
      broken(of_text, "pairs that are not counted");
    if (!std::is_sorted(text.line.begin(), text.line.end()) ||
        (kept > 0 && (text.line.front() < 0 || text.line.back() >= lines)))
      broken(of_text, "pairs of lines that are not there");
    for (const auto* side : {&text.source, &text.target})
      for (const auto& line : *side) {
        const auto fault = line_fault(line);
        if (fault != LineFault::none && (keep == KeepLines::usable || fault != LineFault::empty))
          broken(of_text, "a line that can't be used was kept");
        if (line.find('\n') != std::string::npos) broken(of_text, "a line with a line feed");
      }
    if (keep == KeepLines::all && report.skipped() != 0) broken(of_text, "a skipped line of a text to evaluate");
  });
}

}  // namespace

int fuzz_text(const uint8_t* data, std::size_t size) {
  static const MemoryFile one(of_text), two(of_text);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto cut = bytes.find('\x1E');
  const auto left = bytes.substr(0, cut), right = cut == std::string::npos ? "" : bytes.substr(cut + 1);
  const auto source = one.holding(left), target = two.holding(right);
  try {
    check_lines(source, left);
    check_lines(target, right);
  } catch (const std::exception& error) {
    broken(of_text, std::string("an exception over a file that is there: ") + error.what());
  }
  const auto lines = reference(left).counts.lines, target_lines = reference(right).counts.lines;
  for (const auto keep : {KeepLines::usable, KeepLines::all}) check_pairs(source, target, keep, lines, target_lines);
  return 0;
}

std::vector<std::string> text_seeds() {
  return {std::string("one two\nthree\n\x1E") + "eins zwei\ndrei\n",
          "\xEF\xBB\xBF"
          "a\r\nb\r\n\x1E"
          "A\nB\n",
          characters("a\n\n \t\xC2\xA0\nb\0c\n\xFF\nd\n") + "\x1E" + "A\nB\nC\nD\nE\nF\n",
          "a\rb\xE2\x80\xA8"
          "c\xC2\x85"
          "d\x0B"
          "e\x0C"
          "f\x1E"
          "no end",
          "",
          "\x1E",
          "\xEF\xBB\xBF\n\x1E\n"};
}

std::string mutate_text(const std::string& input, Random& random) {
  static const std::vector<std::string> pieces{"\n",
                                               "\r\n",
                                               "\r",
                                               "\n\n",
                                               "\xEF\xBB\xBF",
                                               "\xEF\xBB",
                                               std::string(1, '\0'),
                                               "\x1E",
                                               "\xC3\xA4",
                                               "\xC3",
                                               "\xFF",
                                               "\xE2\x80\xA8",
                                               "\xC2\x85",
                                               "\x0B",
                                               "\x0C",
                                               "\xF0\x9F\x98\x80",
                                               "\xED\xA0\x80",
                                               "\xF4\x90\x80\x80",
                                               "\xC0\x80",
                                               " ",
                                               "\t",
                                               "\xC2\xA0",
                                               "\xE3\x80\x80",
                                               "\x1C",
                                               "word"};
  auto text = input;
  const auto at = static_cast<std::size_t>(random.below(text.size() + 1));
  switch (random.below(4)) {
    case 0:
    case 1:
      return text.insert(at, pieces[static_cast<std::size_t>(random.below(pieces.size()))]);
    case 2: {  // across the size of one read, now and then
      const auto count = random.below(60) == 0 ? 65530 + random.below(20) : random.below(9);
      return text.insert(at, std::string(static_cast<std::size_t>(count), "x\n "[random.below(3)]));
    }
    default:
      return mutate_bytes(text, characters("ab \n\r\0\x1E\xC3\xA4\xFF\xEF\xBB\xBF\xE2\x80\xA8"), random);
  }
}

}  // namespace headlab::fuzz
