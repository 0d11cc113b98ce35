#include "src/spec/schema.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <typeindex>

#include "src/spec/dump.h"
#include "src/spec/wording.h"

namespace headlab {

namespace {

using Json = nlohmann::ordered_json;

/// Whether some field, here or in a default further in, has to be given.
bool needs_values(Options& options) {
  Fields fields;
  options.describe(fields);
  for (const Field& field : fields.all()) {
    if (field.is_required) return true;
    if (auto nested = std::get_if<Options*>(&field.value); nested && needs_values(**nested)) return true;
    if (auto choice = std::get_if<Choice*>(&field.value); choice && needs_values((*choice)->options())) return true;
  }
  return false;
}

bool needs_value(const Field& field) {
  if (auto nested = std::get_if<Options*>(&field.value)) return field.is_required || needs_values(**nested);
  if (auto choice = std::get_if<Choice*>(&field.value)) return field.is_required || needs_values((*choice)->options());
  return field.is_required;
}

/// Catalogues and the elements of lists are definitions that are referred to, since a mix may wrap another mix.
class Schema {
 public:
  Json object(Options& options, const std::string& type = "");
  Json definitions = Json::object();

 private:
  Json field(const Field& field, const Json& fallback);
  Json choice(const Catalogue& catalogue, bool keyed);
  Json element(Options& element, const std::string& name);
  std::string fresh_name(const std::string& wanted) const;
  static Json reference(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

  std::map<std::pair<const Catalogue*, bool>, std::string> catalogues_;
  std::map<std::type_index, std::string> elements_;
};

std::string Schema::fresh_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 2; definitions.contains(name); ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

Json nullable(Json type, bool optional) {
  if (!optional) return type;
  if (!type.is_array()) type = Json::array({type});
  type.push_back("null");
  return type;
}

/// 1 rather than 1.0.
Json bound(double value) {
  if (std::floor(value) == value && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

/// The schema of one plain value: its type, range and choices.
Json plain(const Field& field, const Json& type, bool optional = false) {
  Json out = {{"type", nullable(type, optional)}};
  if (!field.choices.empty()) {
    out["enum"] = field.choices;
    if (optional) out["enum"].push_back(nullptr);
  }
  if (field.minimum) out["minimum"] = bound(*field.minimum);
  if (field.maximum) out["maximum"] = bound(*field.maximum);
  if (field.exclusive_minimum) out["exclusiveMinimum"] = bound(*field.exclusive_minimum);
  if (field.exclusive_maximum) out["exclusiveMaximum"] = bound(*field.exclusive_maximum);
  return out;
}

Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

std::string description(const Field& field) {
  std::string text = field.help;
  auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  };
  add(field.unit_.empty() ? "" : "in " + field.unit_);
  add(field.sentinel);
  return text;
}

Json Schema::field(const Field& field, const Json& fallback) {
  Json text = field.number_too ? Json::array({"string", "number"}) : Json("string");
  Json out = std::visit(Visitor{
                            [&](bool*) { return plain(field, "boolean"); },
                            [&](int64_t*) { return plain(field, "integer"); },
                            [&](double*) { return plain(field, "number"); },
                            [&](std::string*) { return plain(field, text); },
                            [&](std::optional<bool>*) { return plain(field, "boolean", true); },
                            [&](std::optional<int64_t>*) { return plain(field, "integer", true); },
                            [&](std::optional<double>*) { return plain(field, "number", true); },
                            [&](std::optional<std::string>*) { return plain(field, text, true); },
                            [&](std::vector<int64_t>*) { return list_of(plain(field, "integer")); },
                            [&](std::vector<double>*) { return list_of(plain(field, "number")); },
                            [&](std::vector<std::string>*) { return list_of(plain(field, "string")); },
                            [&](Options* value) { return object(*value); },
                            [&](Choice* value) { return choice(value->catalogue(), false); },
                            [&](Choices* value) { return list_of(choice(value->source(), value->keyed)); },
                            [&](const OptionsList& value) { return list_of(element(value.append(), field.name)); },
                            [&](nlohmann::ordered_json*) { return Json::object(); },
                        },
                        field.value);
  std::string meaning = description(field);
  if (!meaning.empty()) out["description"] = meaning;
  bool nested = std::holds_alternative<Options*>(field.value);  // its fields have their own defaults
  if (!needs_value(field) && !nested) out["default"] = fallback;
  return out;
}

Json Schema::object(Options& options, const std::string& type) {
  Json defaults = dump(options);
  Fields fields;
  options.describe(fields);
  Json properties = Json::object(), required = Json::array();
  if (!type.empty()) {
    properties["type"] = {{"const", type}};
    required.push_back("type");
  }
  for (const Field& described : fields.all()) {
    properties[described.name] = field(described, defaults[described.name]);
    if (needs_value(described)) required.push_back(described.name);
  }
  Json out = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  out["additionalProperties"] = false;
  return out;
}

/// One of the catalogue's names (where an entry needs no options), or an object of one entry.
Json Schema::choice(const Catalogue& catalogue, bool keyed) {
  auto known = catalogues_.find({&catalogue, keyed});
  if (known != catalogues_.end()) return reference(known->second);
  std::string name = fresh_name(catalogue.slot);
  catalogues_[{&catalogue, keyed}] = name;
  definitions[name] = Json::object();  // taken, before the entries refer to it
  Json forms = Json::array();
  for (const EntryInfo& entry : catalogue.entries) {
    std::string meaning = entry.summary + (entry.paper.empty() ? "" : " (arXiv " + entry.paper + ")");
    auto options = entry.options();
    Json described = object(*options, keyed ? "" : entry.name);
    if (!needs_values(*options)) forms.push_back({{"const", entry.name}, {"description", meaning}});
    if (keyed) {
      described = {{"type", "object"},
                   {"properties", {{entry.name, std::move(described)}}},
                   {"required", Json::array({entry.name})},
                   {"additionalProperties", false}};
    }
    described["description"] = meaning;
    std::string entry_name = fresh_name(name + "." + entry.name);
    definitions[entry_name] = std::move(described);
    forms.push_back(reference(entry_name));
  }
  definitions[name] = {{"description", catalogue.summary}, {"oneOf", std::move(forms)}};
  return reference(name);
}

Json Schema::element(Options& element, const std::string& name) {
  auto known = elements_.find(typeid(element));
  if (known != elements_.end()) return reference(known->second);
  std::string own = fresh_name(name + "_item");
  elements_.emplace(typeid(element), own);
  definitions[own] = Json::object();
  Json described = object(element);
  definitions[own] = std::move(described);
  return reference(own);
}

}  // namespace

Json schema(const Options& options, const std::string& title) {
  Schema builder;
  auto copy = options.copy();
  Json described = builder.object(*copy);
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  out.update(described);
  out["patternProperties"] = {{"^\\$schema", true}};
  if (!builder.definitions.empty()) out["$defs"] = std::move(builder.definitions);
  return out;
}

}  // namespace headlab
