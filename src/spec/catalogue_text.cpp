#include "src/spec/catalogue_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "modules/base/clash.h"
#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/spec/dump.h"
#include "src/spec/wording.h"

namespace headlab {

namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr int deepest = 8;  // a struct that holds a list of its own kind

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Broken between words into lines of at most so many characters (longer words stay whole); 0: not broken.
std::vector<std::string> lines_of(const std::string& text, std::size_t most) {
  if (most == 0) return {text};
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = text.substr(at, end - at);
    auto& line = lines.back();
    if (!line.empty() && characters(line) + 1 + characters(word) > most)
      lines.push_back(word);
    else
      line += (at == 0 ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

/// Columns side by side, the last not padded. `most`: characters of each column; absent or 0: as many as there are.
std::string table(const Rows& rows, const std::string& indent, const std::vector<std::size_t>& most = {}) {
  std::vector<std::vector<std::vector<std::string>>> cells;
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    cells.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.back().push_back(lines_of(row[i], i < most.size() ? most[i] : 0));
      for (const auto& line : cells.back().back()) widths[i] = std::max(widths[i], characters(line));
    }
  }
  std::string text;
  for (const auto& row : cells) {
    std::size_t height = 0;
    for (const auto& cell : row) height = std::max(height, cell.size());
    for (std::size_t at = 0; at < height; ++at) {
      std::string line = indent;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto part = at < row[i].size() ? row[i][at] : "";
        line += part;
        if (i + 1 < row.size()) line += std::string(widths[i] - characters(part) + 3, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

std::string default_text(const Field& field, const Json& value) {
  if (field.is_required) return "required";
  if (value.is_null()) return "absent";
  if (value.is_object() && value.contains("type")) return value["type"].get<std::string>();  // a choice
  if (value.is_number_float()) return number_text(value.get<double>());
  if (value.is_string()) return in_quotes(value.get<std::string>());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return characters(text) > 30 ? "see the dump" : text;
}

std::string takes(const Field& field) {
  if (auto choice = std::get_if<Choice*>(&field.value)) return with_article((*choice)->catalogue().slot);
  if (auto choices = std::get_if<Choices*>(&field.value))
    return "a list, each item " + with_article((*choices)->source().slot);
  return expected(field);
}

// `begun`: of an element that starts as a copy of what stands beside its list: what is in its objects was said there.
void add_rows(Options& options, const std::string& prefix, int depth, Rows& rows, bool begun = false) {
  Json defaults = dump(options);
  Fields fields;
  options.describe(fields);
  for (const Field& field : fields.all()) {
    std::string name = prefix + field.name;
    auto nested = std::get_if<Options*>(&field.value);
    if (nested && depth < deepest && !begun) {
      add_rows(**nested, name + ".", depth + 1, rows);
      continue;
    }
    std::string meaning = field.help;
    if (!field.sentinel.empty()) meaning += (meaning.empty() ? "" : "; ") + field.sentinel;
    const bool copied = begun && !field.is_required;
    rows.push_back(
        {name, takes(field), copied ? "as beside the list" : default_text(field, defaults[field.name]), meaning});
    if (auto list = std::get_if<OptionsList>(&field.value); list && depth < deepest) {
      add_rows(list->append(), name + "[].", depth + 1, rows, list->laid_over);
    }
  }
}

std::vector<std::string> entry_row(const EntryInfo& entry) { return {entry.name, entry.summary, entry.paper}; }

/// Slots of which a model has an entry each.
bool is_part_of_a_model(const std::string& slot) {
  static const std::set<std::string> parts{"project", "adapter",      "position",      "score", "normalise",
                                           "gate",    "mix",          "mixer",         "block", "residual",
                                           "norm",    "feed_forward", "added_position"};
  return parts.count(slot) == 1;
}

/// What an entry of `slot` combines with.
std::string combines_text(const Catalogue& slot, const EntryInfo& entry, const std::vector<const Catalogue*>& slots) {
  if (!is_part_of_a_model(slot.slot)) return "";
  std::vector<std::string> lines = entry.notes;
  for (const auto& clash : entry.clashes) lines.push_back("not beside " + clash.with + ": " + clash.why);
  const auto name = slot.slot + "." + entry.name;
  for (const Catalogue* other : slots)
    for (const EntryInfo& one : other->entries)
      for (const auto& clash : one.clashes)
        if (&one != &entry && speaks_of(clash, name))
          lines.push_back("not beside " + other->slot + "." + one.name + ": " + clash.why);
  std::string text = lines.empty() ? "\n  combines with every entry of the other slots\n"
                                   : "\n  combines with the entries of the other slots, but:\n";
  for (const auto& line : lines) text += table({{line}}, "    ", {110});
  return text;
}

std::string entry_text(const Catalogue& slot, const EntryInfo& entry, const std::vector<const Catalogue*>& slots,
                       bool full) {
  std::string text = table({entry_row(entry)}, "");
  return full ? text + "\n" + options_text(*entry.options()) + combines_text(slot, entry, slots) : text;
}

std::string slot_text(const Catalogue& slot, const std::vector<const Catalogue*>& slots, bool full) {
  std::string text;
  if (full) {
    for (const EntryInfo& entry : slot.entries)
      text += (text.empty() ? "" : "\n") + entry_text(slot, entry, slots, true);
    return text;
  }
  Rows rows;
  for (const EntryInfo& entry : slot.entries) rows.push_back(entry_row(entry));
  return table(rows, "");
}

std::string all_text(const std::vector<const Catalogue*>& slots, bool full) {
  Rows rows;
  std::string text;
  for (const Catalogue* slot : slots) {
    rows.push_back({slot->slot, slot->summary, listed(slot->names())});
    text += (text.empty() ? "" : "\n") + slot->slot + ": " + slot->summary + "\n\n" + slot_text(*slot, slots, true);
  }
  return full ? text : table(rows, "", {0, 65, 70});
}

}  // namespace

std::string options_text(const Options& options) {
  auto copy = options.copy();
  Rows rows = {{"option", "takes", "default", "meaning"}};
  add_rows(*copy, "", 0, rows);
  return rows.size() > 1 ? table(rows, "  ", {0, 40, 20, 70}) : "  no options\n";
}

std::string catalogue_text(const std::vector<const Catalogue*>& slots, const std::string& what, bool full) {
  if (what.empty()) return all_text(slots, full);
  std::size_t dot = what.find('.');
  std::string name = what.substr(0, dot);
  std::vector<std::string> names;
  for (const Catalogue* slot : slots) {
    names.push_back(slot->slot);
    if (slot->slot != name) continue;
    if (dot == std::string::npos) return slot_text(*slot, slots, full);
    std::string entry = what.substr(dot + 1);
    if (const EntryInfo* found = slot->find(entry)) return entry_text(*slot, *found, slots, full);
    throw UsageError(unknown_name(slot->slot, entry, slot->names()));
  }
  throw UsageError(unknown_name("slot", name, names));
}

}  // namespace headlab
