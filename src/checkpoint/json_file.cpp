#include "src/checkpoint/json_file.h"

#include <algorithm>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"

namespace headlab {
namespace {

template <class Json>
Json parsed(const std::string& bytes, const std::string& where) {
  // Copying and printing a value recurse: one that is nested without limit would end the stack.
  const auto watch = [&](int depth, typename Json::parse_event_t event, Json&) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= deepest_json)
      throw FileError(where + ": not JSON (nested deeper than " + std::to_string(deepest_json) + ")");
    return true;
  };
  try {
    return Json::parse(bytes, watch);
  } catch (const nlohmann::json::exception& error) {
    throw FileError(where + ": not JSON (" + said_by(error) + ")");
  }
}

template <class Json>
Json object_in(const std::filesystem::path& path) {
  auto value = parsed<Json>(read_file(path), path.string());
  if (!value.is_object()) throw FileError(path.string() + ": expected a JSON object, got " + shown(value));
  return value;
}

}  // namespace

nlohmann::json parse_json(const std::string& bytes, const std::string& where) {
  return parsed<nlohmann::json>(bytes, where);
}

nlohmann::ordered_json parse_ordered_json(const std::string& bytes, const std::string& where) {
  return parsed<nlohmann::ordered_json>(bytes, where);
}

nlohmann::json read_json_file(const std::filesystem::path& path) { return object_in<nlohmann::json>(path); }

nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& path) {
  return object_in<nlohmann::ordered_json>(path);
}

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t longest = 120;
  auto text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::replace(text.begin(), text.end(), '\x7F', '?');  // the one control character that JSON writes as it is
  if (text.size() <= longest) return text;
  auto end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // never within a character
  return text.substr(0, end) + "...";
}

std::string said_by(const nlohmann::json::exception& error) {
  constexpr std::size_t longest = 300;
  std::string text = error.what();
  const auto end = text.find("] ");
  if (text.rfind("[json.exception", 0) == 0 && end != std::string::npos) text.erase(0, end + 2);
  // It shows what was read last, of any length, and that may not even be UTF-8.
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  return text;
}

}  // namespace headlab
