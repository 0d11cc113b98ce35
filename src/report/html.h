#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headlab::html {

/// Text that is safe between tags and in quoted attributes, whatever it holds: & < > " ' are written as references,
/// control characters (but tab and newline) and bytes that are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// A cell of a table. `content` is HTML; so is what `table` returns. `sort_key` is what a click on the header sorts by
/// (a number where it is one), absent: the text.
struct Cell {
  std::string content;
  bool number = false;
  std::string sort_key = {};
};
Cell text_cell(std::string_view text);
Cell number_cell(std::string_view text, double value);

struct Row {
  std::vector<Cell> cells;
  std::string id = {};
};

/// A table whose first cell of each row names it, in a frame that scrolls on narrow screens. Columns without any
/// content are left out. `headers` and `caption` are text.
std::string table(const std::string& caption, const std::vector<std::string>& headers, const std::vector<Row>& rows,
                  bool sortable = false);

/// Data for the page's script, as a script element of class `kind` that holds JSON and nothing that a browser would
/// run.
std::string data(const nlohmann::ordered_json& value, const std::string& kind = "", const std::string& attributes = "");

/// A part of the page with a heading; empty where its content is.
std::string section(const std::string& id, const std::string& title, const std::string& content);

/// Content behind a summary that opens by a click or key.
std::string details(const std::string& summary, const std::string& content, bool open = false);

}  // namespace headlab::html
