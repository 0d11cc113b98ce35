#include "src/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/checkpoint/json_file.h"

namespace headlab {
namespace {

using nlohmann::json;

constexpr std::size_t most_dimensions = 64;

/// A name from the file as messages show it: one that is long or would act on a terminal stands in quotes.
std::string plain(const std::string& name) {
  const bool odd =
      std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  return odd || name.empty() || name.size() > 200 ? in_quotes(name) : name;
}

/// Reads and checks a file's header; each complaint names the file.
class HeaderReader {
 public:
  HeaderReader(uint64_t size, const std::function<void(void*, uint64_t)>& get, const std::string& where)
      : size_(size), get_(get), where_(where) {}

  SafetensorsHeader read() {
    if (size_ < 8) fail("truncated: expected 8 bytes for the length of the header, got a file of " + text(size_));
    uint64_t length = 0;
    get_(&length, 8);
    if (length > longest_safetensors_header) {
      fail("not a safetensors file: its header would be " + text(length) + " bytes long (at most " +
           text(longest_safetensors_header) + ")");
    }
    if (length > size_ - 8) {
      fail("truncated: expected a header of " + text(length) + " bytes, got a file of " + text(size_) + " in all");
    }
    std::string bytes(length, '\0');
    get_(bytes.data(), length);
    SafetensorsHeader header;
    header.data_begin = 8 + length;
    json parsed = parse(bytes);
    if (!parsed.is_object()) fail("the header is not a JSON object");
    for (auto& [name, value] : parsed.items()) {
      if (name == safetensors_metadata_key) {
        header.metadata = metadata(value);
      } else {
        header.entries.push_back(entry(name, value));
      }
    }
    check_places(header);
    read_ties(header);
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(where_ + ": " + what); }

  static std::string text(uint64_t number) { return std::to_string(number); }

  json parse(const std::string& bytes) {
    std::vector<std::set<std::string>> keys;  // of each object that is open
    std::string repeated;
    auto watch = [&](int depth, json::parse_event_t event, json& value) {
      // No header nests as deep, and printing a value recurses.
      if (depth > deepest_json)
        fail("the header is not JSON of a safetensors file: it nests deeper than " + text(deepest_json));
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
        repeated = value.get<std::string>();
      }
      return true;
    };
    json parsed;
    try {
      parsed = json::parse(bytes, watch);
    } catch (const json::exception& error) {
      fail("the header is not JSON (" + said_by(error) + ")");
    }
    if (!repeated.empty()) fail("the header has " + in_quotes(repeated) + " twice");
    return parsed;
  }

  std::map<std::string, std::string> metadata(const json& value) const {
    std::map<std::string, std::string> result;
    if (!value.is_object()) fail("__metadata__ is not a JSON object");
    for (auto& [key, item] : value.items()) {
      if (!item.is_string()) fail("__metadata__." + plain(key) + ": expected text, got " + shown(item));
      result[key] = item.get<std::string>();
    }
    return result;
  }

  TensorEntry entry(const std::string& name, const json& value) const {
    auto number = [](const json& item) { return item.is_number_unsigned(); };
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value["dtype"].is_string() ||
        !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
        !value["data_offsets"].is_array() || value["data_offsets"].size() != 2 ||
        !std::all_of(value["shape"].begin(), value["shape"].end(), number) ||
        !std::all_of(value["data_offsets"].begin(), value["data_offsets"].end(), number)) {
      fail(plain(name) + ": expected {\"dtype\": text, \"shape\": [numbers], \"data_offsets\": [begin, end]}, got " +
           shown(value));
    }
    auto dtype = value["dtype"].get<std::string>();
    auto known =
        std::find_if(std::begin(tensor_types), std::end(tensor_types), [&](auto& type) { return type.name == dtype; });
    if (known == std::end(tensor_types)) {
      fail(plain(name) + ": unknown dtype " + plain(dtype) + " (known: " + tensor_type_names + ")");
    }
    TensorEntry result{
        name, static_cast<std::size_t>(known - tensor_types), {}, value["data_offsets"][0], value["data_offsets"][1]};
    if (value["shape"].size() > most_dimensions) {
      fail(plain(name) + ": expected at most " + text(most_dimensions) + " dimensions, got " +
           text(value["shape"].size()));
    }
    // The strides of a tensor without elements must fit as well.
    uint64_t bytes = known->bytes, spread = known->bytes;
    for (auto& item : value["shape"]) {
      auto size = item.get<uint64_t>();
      constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
      if (size > limit || (size > 0 && spread > limit / size))
        fail(plain(name) + ": the shape " + shown(value["shape"]) + " is too large");
      spread *= std::max<uint64_t>(size, 1);
      bytes *= size;
      result.shape.push_back(static_cast<int64_t>(size));
    }
    if (result.begin > result.end || result.end - result.begin != bytes) {
      fail(plain(name) + ": " + dtype + " " + shown(value["shape"]) + " needs " + text(bytes) +
           " bytes, but its data_offsets are " + shown(value["data_offsets"]));
    }
    return result;
  }

  void check_places(SafetensorsHeader& header) const {
    std::sort(header.entries.begin(), header.entries.end(),
              [](auto& a, auto& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
    uint64_t end = 0;
    const std::string* before = nullptr;
    for (auto& entry : header.entries) {
      if (entry.begin != end) {
        fail(plain(entry.name) + ": its data begins at " + text(entry.begin) + ", expected " + text(end) +
             (before ? ", where " + plain(*before) + " ends" : std::string()) +
             (entry.begin < end ? " (they overlap)" : " (there is a gap)"));
      }
      end = entry.end;
      before = &entry.name;
    }
    auto data = size_ - header.data_begin;
    if (data < end) fail("truncated: expected " + text(end) + " bytes of tensors, got " + text(data));
    if (data > end) fail("expected " + text(end) + " bytes of tensors, got " + text(data) + ": bytes after the end");
  }

  void read_ties(SafetensorsHeader& header) const {
    auto found = header.metadata.find(safetensors_tied_key);
    if (found == header.metadata.end()) return;
    json ties;
    try {
      ties = parse_json(found->second, safetensors_tied_key);
    } catch (const FileError&) {}
    if (!ties.is_object()) return;  // the word has another meaning in a file from elsewhere
    std::set<std::string> names;
    for (auto& entry : header.entries) names.insert(entry.name);
    for (auto& [name, first] : ties.items()) {
      if (!first.is_string() || !names.count(first.get<std::string>()) || names.count(name)) {
        fail("__metadata__.tied: " + plain(name) + " is tied to " + shown(first) +
             ", expected the name of another tensor");
      }
      header.tied[name] = first.get<std::string>();
    }
    header.metadata.erase(found);
  }

  uint64_t size_;
  const std::function<void(void*, uint64_t)>& get_;
  const std::string& where_;
};

}  // namespace

SafetensorsHeader read_safetensors_header(uint64_t size, const std::function<void(void* to, uint64_t bytes)>& get,
                                          const std::string& where) {
  return HeaderReader(size, get, where).read();
}

}  // namespace headlab
