#include "src/spec/catalogue_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

/// Columns side by side, the last not padded.
std::string table(const Rows& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], characters(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - characters(row[i]) + 3, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
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
  auto entries = [](const Catalogue& catalogue) {
    return with_article(catalogue.slot) + ": " + listed(catalogue.names());
  };
  if (auto choice = std::get_if<Choice*>(&field.value)) return entries((*choice)->catalogue());
  if (auto choices = std::get_if<Choices*>(&field.value)) return "a list, each item " + entries((*choices)->source());
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
    rows.push_back({name, takes(field), copied ? "as beside the list" : default_text(field, defaults[field.name]), meaning});
    if (auto list = std::get_if<OptionsList>(&field.value); list && depth < deepest) {
      add_rows(list->append(), name + "[].", depth + 1, rows, list->laid_over);
    }
  }
}

std::vector<std::string> entry_row(const EntryInfo& entry) { return {entry.name, entry.summary, entry.paper}; }

/// What an entry combines with is what it does not exclude.
std::string limits_text(const EntryInfo& entry) {
  std::string text;
  for (const auto& note : entry.notes) text += "  " + note + "\n";
  for (const auto& clash : entry.clashes) text += "  not beside " + clash.with + ": " + clash.why + "\n";
  return text.empty() ? text : "\n" + text;
}

std::string entry_text(const EntryInfo& entry, bool full) {
  std::string text = table({entry_row(entry)}, "");
  return full ? text + "\n" + options_text(*entry.options()) + limits_text(entry) : text;
}

std::string slot_text(const Catalogue& slot, bool full) {
  std::string text;
  if (full) {
    for (const EntryInfo& entry : slot.entries) text += (text.empty() ? "" : "\n") + entry_text(entry, true);
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
    text += (text.empty() ? "" : "\n") + slot->slot + ": " + slot->summary + "\n\n" + slot_text(*slot, true);
  }
  if (!full) return table(rows, "");
  return "Entries of different slots stand in one model unless one of them says otherwise below.\n\n" + text;
}

}  // namespace

std::string options_text(const Options& options) {
  auto copy = options.copy();
  Rows rows = {{"option", "takes", "default", "meaning"}};
  add_rows(*copy, "", 0, rows);
  return rows.size() > 1 ? table(rows, "  ") : "  no options\n";
}

std::string catalogue_text(const std::vector<const Catalogue*>& slots, const std::string& what, bool full) {
  if (what.empty()) return all_text(slots, full);
  std::size_t dot = what.find('.');
  std::string name = what.substr(0, dot);
  std::vector<std::string> names;
  for (const Catalogue* slot : slots) {
    names.push_back(slot->slot);
    if (slot->slot != name) continue;
    if (dot == std::string::npos) return slot_text(*slot, full);
    std::string entry = what.substr(dot + 1);
    if (const EntryInfo* found = slot->find(entry)) return entry_text(*found, full);
    throw UsageError(unknown_name(slot->slot, entry, slot->names()));
  }
  throw UsageError(unknown_name("slot", name, names));
}

}  // namespace headlab
