#include "modules/base/nearest.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace headlab {

namespace {

constexpr std::size_t longest_compared = 100;  // longer names are not typing mistakes
constexpr std::size_t longest_quoted = 60;     // characters
constexpr std::size_t most_listed = 100;       // names

// Text that is safe in one line of a message: control characters and those of `escaped` with a backslash, cut where
// long.
std::string printable(const std::string& text, const std::string& escaped) {
  std::string out;
  std::size_t characters = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0) == 0x80;  // inside a UTF-8 sequence: never cut there
    if (!continues && ++characters > longest_quoted) return out + "...";
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      if (escaped.find(c) != std::string::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// Optimal string alignment: Levenshtein's distance with swaps of neighbours.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    std::swap(last, row);
  }
  return last[b.size()];
}

bool share_beginning(const std::string& a, const std::string& b) {
  std::size_t shorter = std::min(a.size(), b.size());
  return shorter >= 3 && a.compare(0, shorter, b, 0, shorter) == 0;
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& names) {
  if (name.empty() || name.size() > longest_compared) return "";
  std::string typed = lower(name), best, beginning;
  std::size_t best_distance = 0;
  for (const std::string& candidate : names) {
    if (candidate.empty() || candidate.size() > longest_compared) continue;
    std::string known = lower(candidate);
    std::size_t edits = distance(typed, known);
    std::size_t allowed = std::max<std::size_t>(1, (std::max(typed.size(), known.size()) + 1) / 3);
    bool all_replaced = edits >= std::min(typed.size(), known.size());  // "a" is not "b"
    if (edits <= allowed && !all_replaced && (best.empty() || edits < best_distance)) {
      best = candidate;
      best_distance = edits;
    }
    if (beginning.empty() && share_beginning(typed, known)) beginning = candidate;
  }
  return best.empty() ? beginning : best;
}

std::vector<std::string> nearest_names(const std::string& name, std::vector<std::string> names, std::size_t count) {
  std::string typed = lower(name.substr(0, longest_compared));
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (std::string& candidate : names) {
    std::size_t edits = distance(typed, lower(candidate.substr(0, longest_compared)));
    ranked.emplace_back(edits, std::move(candidate));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > count) ranked.resize(count);
  names.clear();
  for (auto& [edits, candidate] : ranked) names.push_back(std::move(candidate));
  return names;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  std::string nearest = nearest_name(name, names);
  return nearest.empty() ? "" : "; did you mean " + in_quotes(nearest) + "?";
}

std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names) {
  return "unknown " + kind + " " + in_quotes(name) + did_you_mean(name, names) + " (exists: " + listed(names) + ")";
}

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == most_listed) return text + " and " + std::to_string(names.size() - i) + " more";
    text += (i ? ", " : "") + printable(names[i], "");
  }
  return text;
}

std::string in_quotes(const std::string& text) { return "\"" + printable(text, "\"\\") + "\""; }

}  // namespace headlab
