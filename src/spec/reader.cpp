#include "src/spec/reader.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/spec/path.h"
#include "src/spec/wording.h"

namespace headlab {

namespace {

constexpr std::size_t most_listed = 10;  // keys in one message

/// A value on its way into a field. `node` is null for what the document leaves out; `at` is then the innermost object
/// that is written.
struct Written {
  const Node* node;
  Place at;
  std::string path;
};

/// The entry that a value of a catalogue names, and where its options are.
struct Named {
  std::string type;
  Written options;
  bool has_type_key = false;  // {"type": "rope", ...}: "type" is a key beside the options
};

class Reader {
 public:
  /// `begun`: the options hold values that stay where nothing is written.
  void object(const Written& written, Options& options, const std::string& type = "", bool has_type_key = false,
              bool root = false, bool begun = false);
  void repeated(const Node& node, const std::string& path);
  std::vector<Mistake> mistakes;

 private:
  void field(const Field& field, const Written& written);
  void defaults(const Field& field, const Written& written);
  void choice(const Written& written, Choice& choice, const Field& field);
  std::optional<Named> named(const Written& written, const Choice* current, const Catalogue& catalogue, bool keyed,
                             const Field& field);
  void rules(const Written& written, const Options& options);

  void add(const Place& at, const std::string& path, const std::string& message) {
    mistakes.push_back({at, path, message});
  }
  /// A value that could not be read: the rules of the structs around it are not asked.
  void wrong(const Place& at, const std::string& path, const std::string& message) {
    ++unread_;
    add(at, path, message);
  }
  void unexpected(const Written& written, const std::string& expected, const std::string& more = "") {
    wrong(written.at, written.path, "expected " + expected + ", got " + written.node->got() + more);
  }

  bool take(const Written& written, const Field& field, bool& out);
  bool take(const Written& written, const Field& field, int64_t& out);
  bool take(const Written& written, const Field& field, double& out);
  bool take(const Written& written, const Field& field, std::string& out);
  template <class T>
  void take_optional(const Written& written, const Field& field, std::optional<T>& out);
  template <class T>
  void take_list(const Written& written, const Field& field, std::vector<T>& out);

  std::size_t unread_ = 0;
  bool begun_ = false;  // the values being read are laid over others, of an element that started with values
};

Written at_node(const Node& node, std::string path) { return {&node, node.at, std::move(path)}; }

bool in_range(const Field& field, double value) {
  return !(field.minimum && value < *field.minimum) && !(field.maximum && value > *field.maximum) &&
         !(field.exclusive_minimum && value <= *field.exclusive_minimum) &&
         !(field.exclusive_maximum && value >= *field.exclusive_maximum);
}

bool Reader::take(const Written& written, const Field& field, bool& out) {
  if (written.node->kind != Node::Kind::boolean) return unexpected(written, expected_element(field)), false;
  out = written.node->boolean;
  return true;
}

bool Reader::take(const Written& written, const Field& field, int64_t& out) {
  bool fits = written.node->integer && in_range(field, static_cast<double>(*written.node->integer));
  if (!fits) return unexpected(written, expected_element(field)), false;
  out = *written.node->integer;
  return true;
}

bool Reader::take(const Written& written, const Field& field, double& out) {
  bool fits = written.node->kind == Node::Kind::number && in_range(field, written.node->number);
  if (!fits) return unexpected(written, expected_element(field)), false;
  out = written.node->number;
  return true;
}

bool Reader::take(const Written& written, const Field& field, std::string& out) {
  bool number = field.number_too && written.node->kind == Node::Kind::number;
  if (written.node->kind != Node::Kind::string && !number) return unexpected(written, expected_element(field)), false;
  const std::string& text = written.node->text;
  if (!field.choices.empty()) {
    bool known = false;
    for (const std::string& choice : field.choices) known = known || choice == text;
    if (!known) return unexpected(written, expected_element(field), did_you_mean(text, field.choices)), false;
  }
  out = text;
  return true;
}

template <class T>
void Reader::take_optional(const Written& written, const Field& field, std::optional<T>& out) {
  if (written.node->kind == Node::Kind::null) {
    out.reset();
  } else if (T value{}; take(written, field, value)) {
    out = std::move(value);
  }
}

template <class T>
void Reader::take_list(const Written& written, const Field& field, std::vector<T>& out) {
  if (written.node->kind != Node::Kind::list) return unexpected(written, expected(field));
  std::vector<T> values;
  for (std::size_t i = 0; i < written.node->items.size(); ++i) {
    T value{};
    take(at_node(written.node->items[i], item_path(written.path, i)), field, value);
    values.push_back(std::move(value));
  }
  out = std::move(values);
}

/// Finds the entry that a value names; nothing, and a mistake, where it names none.
std::optional<Named> Reader::named(const Written& written, const Choice* current, const Catalogue& catalogue,
                                   bool keyed, const Field& field) {
  const Node& node = *written.node;
  Named found{"", written, false};
  Written name = written;  // where the name stands
  if (node.kind == Node::Kind::string) {
    found.type = node.text;
    found.options.node = nullptr;
    if (keyed) found.options.path = key_path(written.path, node.text);
  } else if (node.kind != Node::Kind::object) {
    return unexpected(written, expected_element(field)), std::nullopt;
  } else if (keyed) {
    if (node.members.size() != 1) {
      std::vector<std::string> keys;
      for (const Node::Member& member : node.members) {
        if (keys.size() == most_listed) {
          keys.push_back("... (" + std::to_string(node.members.size()) + " in all)");
          break;
        }
        keys.push_back(in_quotes(member.key));
      }
      wrong(written.at, written.path,
            "expected exactly one key, the name of " + with_article(catalogue.slot) +
                " (exists: " + listed(catalogue.names()) + "), got " + listed(keys));
      return std::nullopt;
    }
    const Node::Member& only = node.members.front();
    found.type = only.key;
    found.options = at_node(only.value, key_path(written.path, only.key));
    name.at = only.at;
  } else if (const Node* type = node.find("type")) {
    name = at_node(*type, key_path(written.path, "type"));
    if (type->kind != Node::Kind::string)
      return unexpected(name, "the name of " + with_article(catalogue.slot)), std::nullopt;
    found.type = type->text;
    found.has_type_key = true;
  } else if (current && node.implied) {
    found.type = current->type();  // `--set model.position.base=500`: the default entry with another option
  } else {
    wrong(written.at, written.path,
          "expected a \"type\", the name of " + with_article(catalogue.slot) +
              " (exists: " + listed(catalogue.names()) + ")");
    return std::nullopt;
  }
  if (!catalogue.find(found.type)) {
    wrong(name.at, name.path, unknown_name(catalogue.slot, found.type, catalogue.names()));
    return std::nullopt;
  }
  const Node* options = found.options.node;
  if (options && options->kind != Node::Kind::object) {
    unexpected(found.options, "an object with the options of " + found.type);
    return std::nullopt;
  }
  return found;
}

void Reader::choice(const Written& written, Choice& choice, const Field& field) {
  auto entry = named(written, &choice, choice.catalogue(), false, field);
  if (!entry) return;
  bool kept = (!entry->has_type_key && written.node->implied) || (begun_ && entry->type == choice.type());
  if (!kept) choice.choose(entry->type);
  const auto outer = std::exchange(begun_, begun_ && kept);
  object(entry->options, choice.options(), entry->type, entry->has_type_key);
  begun_ = outer;
}

void Reader::field(const Field& field, const Written& written) {
  const Node& node = *written.node;
  std::visit(Visitor{
                 [&](bool* out) { take(written, field, *out); },
                 [&](int64_t* out) { take(written, field, *out); },
                 [&](double* out) { take(written, field, *out); },
                 [&](std::string* out) { take(written, field, *out); },
                 [&](std::optional<bool>* out) { take_optional(written, field, *out); },
                 [&](std::optional<int64_t>* out) { take_optional(written, field, *out); },
                 [&](std::optional<double>* out) { take_optional(written, field, *out); },
                 [&](std::optional<std::string>* out) { take_optional(written, field, *out); },
                 [&](std::vector<int64_t>* out) { take_list(written, field, *out); },
                 [&](std::vector<double>* out) { take_list(written, field, *out); },
                 [&](std::vector<std::string>* out) { take_list(written, field, *out); },
                 [&](Options* out) {
                   if (node.kind != Node::Kind::object) return unexpected(written, expected(field));
                   object(written, *out);
                 },
                 [&](Choice* out) { choice(written, *out, field); },
                 [&](Choices* out) {
                   if (node.kind != Node::Kind::list) return unexpected(written, expected(field));
                   out->items.clear();
                   const auto outer = std::exchange(begun_, false);
                   for (std::size_t i = 0; i < node.items.size(); ++i) {
                     Written item = at_node(node.items[i], item_path(written.path, i));
                     auto entry = named(item, nullptr, out->source(), out->keyed, field);
                     if (!entry) continue;
                     Choice& chosen = out->items.emplace_back(out->source, entry->type);
                     object(entry->options, chosen.options(), entry->type, entry->has_type_key);
                   }
                   begun_ = outer;
                 },
                 [&](const OptionsList& out) {
                   if (node.kind != Node::Kind::list) return unexpected(written, expected(field));
                   out.clear();
                   for (std::size_t i = 0; i < node.items.size(); ++i) {
                     Written item = at_node(node.items[i], item_path(written.path, i));
                     Options& element = out.append();
                     if (item.node->kind != Node::Kind::object) {
                       unexpected(item, expected_element(field));
                     } else {
                       object(item, element, "", false, false, out.laid_over);
                     }
                   }
                 },
                 [&](nlohmann::ordered_json* out) { *out = to_json(node); },
             },
             field.value);
}

/// A field that the document leaves out: what is inside its default may have required fields and rules.
void Reader::defaults(const Field& field, const Written& written) {
  std::visit(Visitor{
                 [&](Options* out) { object(written, *out); },
                 [&](Choice* out) { object(written, out->options(), out->type()); },
                 [&](Choices* out) {
                   for (std::size_t i = 0; i < out->items.size(); ++i) {
                     std::string path = item_path(written.path, i);
                     if (out->keyed) path = key_path(path, out->items[i].type());
                     object({nullptr, written.at, path}, out->items[i].options(), out->items[i].type());
                   }
                 },
                 [&](const OptionsList& out) {
                   for (std::size_t i = 0; i < out.size(); ++i) {
                     object({nullptr, written.at, item_path(written.path, i)}, out.at(i));
                   }
                 },
                 [](const auto&) {},
             },
             field.value);
}

void Reader::object(const Written& written, Options& options, const std::string& type, bool has_type_key, bool root,
                    bool begun) {
  Fields fields;
  options.describe(fields);
  std::vector<std::string> names;
  if (has_type_key) names.push_back("type");
  for (const Field& field : fields.all()) names.push_back(field.name);
  std::set<std::string> known(names.begin(), names.end());
  if (known.size() != names.size()) throw std::logic_error("an entry of a catalogue describes a field named type");

  std::size_t unread = unread_;
  if (written.node) {
    for (const Node::Member& member : written.node->members) {
      bool schema = root && member.key.rfind("$schema", 0) == 0;
      if (member.first || schema || known.count(member.key)) continue;
      std::string accepted = (type.empty() ? "accepted: " : "accepted by " + type + ": ") + listed(names);
      if (!type.empty() && fields.all().empty()) accepted = in_quotes(type) + " has no options";
      add(member.at, key_path(written.path, member.key),
          "unknown key" + did_you_mean(member.key, names) + " (" + accepted + ")");
    }
  }
  for (const Field& described : fields.all()) {
    std::string path = key_path(written.path, described.name);
    const Node* value = written.node ? written.node->find(described.name) : nullptr;
    const auto outer = std::exchange(begun_, begun_ || begun);
    if (value) {
      field(described, at_node(*value, path));
    } else if (described.is_required && !outer) {
      wrong(written.at, path,
            "required: " + expected(described) + (described.help.empty() ? "" : ", ") + described.help);
    } else {
      defaults(described, {nullptr, written.at, path});
    }
    begun_ = outer;
  }
  if (unread == unread_) rules(written, options);
}

void Reader::rules(const Written& written, const Options& options) {
  Problems problems;
  try {
    options.rules(problems);
  } catch (const Error& error) {
    problems.add("", error.what());
  }
  for (const Problems::Problem& problem : problems.found) {
    auto steps = parse_path(problem.field);
    Place at = written.node ? innermost(*written.node, steps).at : written.at;
    std::string path = written.path;
    if (!problem.field.empty()) path += (path.empty() ? "" : ".") + problem.field;
    add(at, path, problem.message);
  }
}

/// Keys that stand twice in one object, anywhere.
void Reader::repeated(const Node& node, const std::string& path) {
  for (std::size_t i = 0; i < node.items.size(); ++i) repeated(node.items[i], item_path(path, i));
  for (const Node::Member& member : node.members) {
    std::string at = key_path(path, member.key);
    if (member.first) {
      std::string where = member.first->line == 0 ? member.first->text()
                                                  : "line " + std::to_string(member.first->line) + ", column " +
                                                        std::to_string(member.first->column);
      add(member.at, at, "repeated key; it stands first at " + where);
    }
    repeated(member.value, at);
  }
}

}  // namespace

std::vector<Mistake> read(const Document& document, Options& options) {
  Reader reader;
  const Node& root = document.root();
  reader.repeated(root, "");
  if (root.kind == Node::Kind::object) {
    reader.object({&root, root.at, ""}, options, "", false, true);
  } else {
    reader.mistakes.push_back({root.at, "", "expected an object, got " + root.got()});
  }
  return sorted(std::move(reader.mistakes));
}

void read_or_throw(const Document& document, Options& options) { throw_mistakes(read(document, options)); }

}  // namespace headlab
