#include "src/spec/override.h"

#include <memory>
#include <utility>

#include "modules/base/nearest.h"
#include "src/spec/mistakes.h"
#include "src/spec/path.h"

namespace headlab {

namespace {

Node implied_object(const Place& at) {
  Node node;
  node.kind = Node::Kind::object;
  node.at = at;
  node.implied = true;
  return node;
}

/// A choice written as its name alone becomes an object that can hold options: "rope" is {"type": "rope"}, and the
/// stage "train", when the next key is "train", is {"train": {}}.
Node opened(const Node& name, const std::string& next, const Place& at) {
  Node node = implied_object(name.at);
  if (name.text == next) {
    node.members.push_back({next, name.at, implied_object(at), std::nullopt});
  } else {
    node.members.push_back({"type", name.at, name, std::nullopt});
  }
  return node;
}

std::string is(const std::string& path, const Node& node) {
  return (path.empty() ? "the spec" : path) + " is " + node.got();
}

/// Goes one step down from `node`, making what is absent. Returns what was wrong.
std::string descend(Node*& node, const Step& step, const std::string& so_far, const Place& at) {
  if (step.index) {
    if (node->implied && node->members.empty()) return so_far + " is not in the spec; set the whole list";
    if (node->kind != Node::Kind::list) return is(so_far, *node) + ", not a list";
    std::size_t size = node->items.size();
    if (*step.index > size) {
      return so_far + " has " + std::to_string(size) + (size == 1 ? " item" : " items") + "; the next is " +
             item_path(so_far, size);
    }
    if (*step.index == size) node->items.push_back(implied_object(at));
    node = &node->items[*step.index];
    return "";
  }
  if (node->kind == Node::Kind::null) *node = implied_object(at);
  if (node->kind == Node::Kind::string) *node = opened(*node, step.key, at);
  if (node->kind != Node::Kind::object) return is(so_far, *node) + ", which has no keys";
  if (!node->find(step.key)) node->members.push_back({step.key, at, implied_object(at), std::nullopt});
  node = node->find(step.key);
  return "";
}

/// A text that is no JSON is a string, unless it begins like JSON: then the syntax error is worth saying.
Node value_of(const std::string& text, const Place& at) {
  try {
    return parse_value(text, at);
  } catch (const SpecErrors&) {
    if (!text.empty() && (text[0] == '{' || text[0] == '[' || text[0] == '"')) throw;
    Node node;
    node.kind = Node::Kind::string;
    node.text = text;
    node.at = at;
    return node;
  }
}

/// An argument as messages name it: one line of UTF-8 that does nothing to a terminal.
std::string printable(const std::string& argument) {
  constexpr std::size_t longest = 200;
  const bool utf8 = is_utf8(argument);
  std::string text;
  for (const char c : argument) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0) == 0x80;
    if (text.size() >= longest && !continues) return text + "...";
    text += byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8) ? '?' : c;
  }
  return text;
}

}  // namespace

std::optional<Mistake> set_value(Document& document, const std::string& path, const Place& key, Node value) {
  std::vector<Step> steps = parse_path(path);
  if (steps.empty()) {
    return Mistake{key, "", "expected a key path such as model.width or stages[0].train.steps, got " + in_quotes(path)};
  }
  Node root = document.root();
  Node* node = &root;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::string wrong = descend(node, steps[i], shortened(path_text(steps, i)), key);
    if (!wrong.empty()) return Mistake{key, path, wrong};
  }
  *node = std::move(value);
  document.root() = std::move(root);
  return std::nullopt;
}

std::vector<Mistake> apply_overrides(Document& document, const std::vector<std::string>& arguments) {
  std::vector<Mistake> mistakes;
  int64_t order = 0;
  for (const std::string& argument : arguments) {
    std::size_t equals = argument.find('=');
    std::string path = argument.substr(0, equals);
    Place at;
    at.source = std::make_shared<const Place::Source>(Place::Source{"--set " + printable(argument), path, ++order});
    if (equals == std::string::npos || path.empty()) {
      mistakes.push_back({at, is_utf8(path) ? path : "", "expected key.path=value"});
      continue;
    }
    if (!is_utf8(argument)) {
      mistakes.push_back({at, "", "expected UTF-8"});
      continue;
    }
    try {
      if (auto mistake = set_value(document, path, at, value_of(argument.substr(equals + 1), at))) {
        mistakes.push_back(*mistake);
      }
    } catch (const SpecErrors& errors) {
      mistakes.insert(mistakes.end(), errors.mistakes.begin(), errors.mistakes.end());
    }
  }
  return mistakes;
}

}  // namespace headlab
