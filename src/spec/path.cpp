#include "src/spec/path.h"

#include <algorithm>

#include "modules/base/nearest.h"

namespace headlab {

namespace {

// Each step makes one more level of the document; deeper than any spec, and than what the stack of its readers bears.
constexpr std::size_t most_steps = 100;

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '$';
}

}  // namespace

std::vector<Step> parse_path(const std::string& text) {
  std::vector<Step> steps;
  std::size_t i = 0;
  while (i < text.size()) {
    if (steps.size() == most_steps) return {};
    if (text[i] == '[') {
      std::size_t end = text.find(']', i);
      if (steps.empty() || end == std::string::npos || end == i + 1 || end - i > 9) return {};
      std::size_t index = 0;
      for (std::size_t digit = i + 1; digit < end; ++digit) {
        if (text[digit] < '0' || text[digit] > '9') return {};
        index = index * 10 + static_cast<std::size_t>(text[digit] - '0');
      }
      steps.push_back({"", index});
      i = end + 1;
    } else {
      if (!steps.empty() && text[i++] != '.') return {};
      std::size_t end = i;
      while (end < text.size() && plain(text[end])) ++end;
      if (end == i) return {};
      steps.push_back({text.substr(i, end - i), std::nullopt});
      i = end;
    }
  }
  return steps;
}

std::string key_path(const std::string& path, const std::string& key) {
  bool simple = !key.empty() && std::all_of(key.begin(), key.end(), plain);
  return path + (path.empty() ? "" : ".") + (simple ? key : in_quotes(key));
}

std::string item_path(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

std::string shortened(const std::string& path) {
  constexpr std::size_t longest = 300;
  if (path.size() <= longest) return path;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(path[end]) & 0xC0) == 0x80) --end;  // never within a character
  return path.substr(0, end) + "...";
}

std::string path_text(const std::vector<Step>& steps, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count && i < steps.size(); ++i) {
    path = steps[i].index ? item_path(path, *steps[i].index) : key_path(path, steps[i].key);
  }
  return path;
}

const Node& innermost(const Node& node, const std::vector<Step>& path) {
  const Node* at = &node;
  for (const Step& step : path) {
    const Node* next = nullptr;
    if (!step.index) {
      next = at->find(step.key);
    } else if (*step.index < at->items.size()) {
      next = &at->items[*step.index];
    }
    if (!next) break;
    at = next;
  }
  return *at;
}

}  // namespace headlab
