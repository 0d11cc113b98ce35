#include "src/terminal/table.h"

#include <algorithm>

#include "src/terminal/format.h"

namespace headlab {
namespace {

constexpr int64_t narrowest_text = 8;

bool looks_like_a_number(const std::string& cell) {
  return cell.empty() || cell == "nan" || cell == "inf" || cell == "-inf" ||
         (cell.find_first_of("0123456789") != std::string::npos &&
          cell.find_first_not_of("0123456789.,+- %kMGTP±") == std::string::npos) ||
         cell == "-";
}

}  // namespace

std::string Table::text(int64_t columns, int64_t indent) const {
  if (rows.empty()) return "";
  std::size_t count = header.size();
  for (auto& row : rows) count = std::max(count, row.size());
  auto cell = [](const std::vector<std::string>& row, std::size_t i) {
    return i < row.size() ? row[i] : std::string();
  };

  std::vector<int64_t> widths(count);
  std::vector<bool> numbers(count, true);
  for (std::size_t i = 0; i < count; ++i) {
    widths[i] = text_width(cell(header, i));
    for (auto& row : rows) {
      widths[i] = std::max(widths[i], text_width(cell(row, i)));
      numbers[i] = numbers[i] && looks_like_a_number(cell(row, i));
    }
  }
  auto total = [&] {
    int64_t sum = indent + 2 * static_cast<int64_t>(count - 1);
    for (auto width : widths) sum += width;
    return sum;
  };
  while (total() > columns) {
    std::size_t widest = count;
    for (std::size_t i = 0; i < count; ++i) {
      if (!numbers[i] && widths[i] > narrowest_text && (widest == count || widths[i] > widths[widest])) widest = i;
    }
    if (widest == count) break;
    --widths[widest];
  }

  std::string text;
  auto add = [&](const std::vector<std::string>& row) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < count; ++i) {
      auto shown = shortened(cell(row, i), widths[i]);
      line += (i > 0 ? "  " : "") + (numbers[i] ? padded_left(shown, widths[i]) : padded(shown, widths[i]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  if (!header.empty()) add(header);
  for (auto& row : rows) add(row);
  return text;
}

}  // namespace headlab
