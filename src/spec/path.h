#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/spec/document.h"

namespace headlab {

/// One step of a key path: a key, or the place in a list.
struct Step {
  std::string key;
  std::optional<std::size_t> index;
};

/// "stages[3].prune.fraction" -> stages, [3], prune, fraction. Empty for a text that is not a path, or one of more
/// than 100 steps.
std::vector<Step> parse_path(const std::string& text);

/// The path of a key or an item within `path`; keys with unusual characters are quoted.
std::string key_path(const std::string& path, const std::string& key);
std::string item_path(const std::string& path, std::size_t index);

/// A path as messages show it: keys have any length, messages are read by people.
std::string shortened(const std::string& path);

/// The path of the first `count` steps.
std::string path_text(const std::vector<Step>& steps, std::size_t count);

/// The innermost node on the way of `path` that is written.
const Node& innermost(const Node& node, const std::vector<Step>& path);

}  // namespace headlab
