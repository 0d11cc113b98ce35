#include "src/spec/dump.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/spec/wording.h"

namespace headlab {

namespace {

using Json = nlohmann::ordered_json;

Json struct_json(Options& options, const std::string& type = "");

Json plain(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a number that JSON cannot hold");
  return value;
}

template <class T>
Json plain(const T& value) {
  return value;
}

template <class T>
Json plain(const std::optional<T>& value) {
  return value ? plain(*value) : Json(nullptr);
}

template <class T>
Json plain(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(plain(value));
  return list;
}

Json value_json(const Field& field) {
  return std::visit(Visitor{
                        [](Options* value) { return struct_json(*value); },
                        [](Choice* value) { return struct_json(value->options(), value->type()); },
                        [](Choices* value) {
                          Json list = Json::array();
                          for (Choice& item : value->items) {
                            if (value->keyed) {
                              list.push_back(Json::object({{item.type(), struct_json(item.options())}}));
                            } else {
                              list.push_back(struct_json(item.options(), item.type()));
                            }
                          }
                          return list;
                        },
                        [](const OptionsList& value) {
                          Json list = Json::array();
                          for (std::size_t i = 0; i < value.size(); ++i) list.push_back(struct_json(value.at(i)));
                          return list;
                        },
                        [](nlohmann::ordered_json* value) { return *value; },
                        [](auto* value) { return plain(*value); },
                    },
                    field.value);
}

Json struct_json(Options& options, const std::string& type) {
  Fields fields;
  options.describe(fields);
  Json object = Json::object();
  if (!type.empty()) object["type"] = type;
  for (const Field& field : fields.all()) object[field.name] = value_json(field);
  return object;
}

}  // namespace

Json dump(const Options& options) { return struct_json(*options.copy()); }
Json dump(const Choice& choice) { return struct_json(*choice.options().copy(), choice.type()); }

std::string dump_text(const Options& options) {
  return dump(options).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headlab
