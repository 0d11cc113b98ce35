#include "src/spec/document.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "modules/base/nearest.h"
#include "src/spec/mistakes.h"
#include "src/spec/path.h"

namespace headlab {

namespace {

constexpr std::size_t largest_file = 4 << 20;

}  // namespace

std::string Place::text() const {
  std::string name = source ? source->name : "";
  return line == 0 ? name : name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

bool Place::operator<(const Place& other) const {
  auto key = [](const Place& p) { return std::make_tuple(p.source ? p.source->order : -1, p.line, p.column); };
  return key(*this) < key(other);
}

std::string Mistake::text() const {
  std::string where = place.text();
  bool said_by_place = place.source && place.line == 0 && place.source->path == path;
  if (!path.empty() && !said_by_place) where += ": " + shortened(path);
  return where + ": " + message;
}

const Node* Node::find(const std::string& key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Node* Node::find(const std::string& key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

std::string Node::got() const {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return boolean ? "true" : "false";
    case Kind::number:
      return text.size() > 40 ? text.substr(0, 40) + "..." : text;
    case Kind::string:
      return in_quotes(text);
    case Kind::list:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return "";
}

Document Document::load(const std::string& path) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw UsageError(path + ": no such file");
  if (std::filesystem::is_directory(status)) throw UsageError(path + ": expected a spec file, got a folder");
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw UsageError(path + ": cannot be read: " + std::strerror(errno));
  std::string text(largest_file + 1, '\0');
  std::size_t size = std::fread(text.data(), 1, text.size(), file.get());
  if (std::ferror(file.get())) throw UsageError(path + ": cannot be read: " + std::strerror(errno));
  if (size > largest_file) throw UsageError(path + ": expected a spec of at most 4 MiB");
  text.resize(size);
  return parse_text(text, path);
}

Place Document::place(const std::string& path) const { return innermost(root_, parse_path(path)).at; }

nlohmann::ordered_json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return nullptr;
    case Node::Kind::boolean:
      return node.boolean;
    case Node::Kind::number: {
      bool digits_only = node.text.find_first_of(".eE") == std::string::npos;
      if (node.integer && digits_only) return *node.integer;
      return node.number;
    }
    case Node::Kind::string:
      return node.text;
    case Node::Kind::list: {
      auto list = nlohmann::ordered_json::array();
      for (const Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Node::Kind::object: {
      nlohmann::ordered_json::object_t object;
      for (const Node::Member& member : node.members) {
        // No look-up of a key that is known to be new: it would take the square of their number.
        if (!member.first) object.emplace_back(member.key, to_json(member.value));
      }
      return nlohmann::ordered_json(std::move(object));
    }
  }
  return nullptr;
}

}  // namespace headlab
