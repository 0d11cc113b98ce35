#include "src/report/html.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace headlab::html {
namespace {

/// The length of the UTF-8 character at `at` (Unicode 15, table 3-7), 0 where there is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  auto between = [&](std::size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  auto tail = [&](std::size_t i) { return between(i, 0x80, 0xbf); };
  if (byte(0) < 0x80) return 1;
  if (between(0, 0xc2, 0xdf)) return tail(1) ? 2 : 0;
  if (between(0, 0xe0, 0xef)) {
    bool second = byte(0) == 0xe0 ? between(1, 0xa0, 0xbf) : byte(0) == 0xed ? between(1, 0x80, 0x9f) : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (between(0, 0xf0, 0xf4)) {
    bool second = byte(0) == 0xf0 ? between(1, 0x90, 0xbf) : byte(0) == 0xf4 ? between(1, 0x80, 0x8f) : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string escape(std::string_view text) {
  constexpr std::string_view special = "&<>\"'";
  constexpr const char* references[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  constexpr const char* replacement = "\xef\xbf\xbd";
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    auto length = character_length(text, at);
    auto first = static_cast<unsigned char>(text[at]);
    auto found = special.find(text[at]);
    bool control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
    if (found != std::string_view::npos) {
      result += references[found];
    } else if (length == 0 || control) {
      result += replacement;
    } else {
      result += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

Cell text_cell(std::string_view text) { return {escape(text)}; }

Cell number_cell(std::string_view text, double value) {
  // Numbers that are none come last, whichever way it is sorted.
  return {escape(text), true, std::isfinite(value) ? nlohmann::json(value).dump() : std::string("nan")};
}

std::string table(const std::string& caption, const std::vector<std::string>& headers, const std::vector<Row>& rows,
                  bool sortable) {
  if (rows.empty()) return "";
  auto cell = [](const Row& row, std::size_t i) { return i < row.cells.size() ? row.cells[i] : Cell{}; };
  std::vector<bool> shown(headers.size()), numbers(headers.size());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    shown[i] = std::any_of(rows.begin(), rows.end(), [&](auto& row) { return !cell(row, i).content.empty(); });
    numbers[i] = std::any_of(rows.begin(), rows.end(), [&](auto& row) { return cell(row, i).number; });
  }
  std::string result = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + escape(caption) +
                       "\"><table" + (sortable ? " class=\"sortable\"" : "") + "><caption>" + escape(caption) +
                       "</caption><thead><tr>";
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!shown[i]) continue;
    auto name = escape(headers[i]);
    result += std::string("<th scope=\"col\"") + (numbers[i] ? " class=\"number\"" : "") + ">" +
              (sortable ? "<button type=\"button\">" + name + "</button>" : name) + "</th>";
  }
  result += "</tr></thead><tbody>\n";
  for (auto& row : rows) {
    result += "<tr" + (row.id.empty() ? "" : " id=\"" + escape(row.id) + "\"") + ">";
    for (std::size_t i = 0; i < headers.size(); ++i) {
      if (!shown[i]) continue;
      auto item = cell(row, i);
      auto key = item.sort_key.empty() ? "" : " data-key=\"" + escape(item.sort_key) + "\"";
      result += i == 0 ? "<th scope=\"row\"" : "<td";
      result += std::string(item.number ? " class=\"number\"" : "") + key + ">" + item.content;
      result += i == 0 ? "</th>" : "</td>";
    }
    result += "</tr>\n";
  }
  return result + "</tbody></table></div>\n";
}

std::string data(const nlohmann::ordered_json& value, const std::string& kind, const std::string& attributes) {
  auto text = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find_first_of("<>", at)) != std::string::npos; at += 6)
    text.replace(at, 1, text[at] == '<' ? "\\u003c" : "\\u003e");
  return "<script type=\"application/json\"" + (kind.empty() ? "" : " class=\"" + kind + "\"") + attributes + ">" +
         text + "</script>\n";
}

std::string section(const std::string& id, const std::string& title, const std::string& content) {
  if (content.empty()) return "";
  return "<section id=\"" + escape(id) + "\"><h2>" + escape(title) + "</h2>\n" + content + "</section>\n";
}

std::string details(const std::string& summary, const std::string& content, bool open) {
  return std::string("<details") + (open ? " open" : "") + "><summary>" + escape(summary) + "</summary>" + content +
         "</details>\n";
}

}  // namespace headlab::html
