#include "src/checkpoint/safetensors.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"

namespace headlab {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it lies in memory");

struct Dtype {
  const char* name;
  at::ScalarType type;
};

// In the order in which their tensors lie in a file: no element size before a larger one.
constexpr Dtype dtypes[] = {{"I64", at::kLong},     {"F64", at::kDouble}, {"F32", at::kFloat}, {"I32", at::kInt},
                            {"BF16", at::kBFloat16}, {"F16", at::kHalf},  {"I16", at::kShort}, {"I8", at::kChar},
                            {"U8", at::kByte},       {"BOOL", at::kBool}};
constexpr const char* dtype_names = "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL";
constexpr const char* metadata_key = "__metadata__";
constexpr const char* tied_key = "tied";
constexpr uint64_t longest_header = 100'000'000;  // bytes; the limit of the reference implementation

const Dtype* find_dtype(at::ScalarType type) {
  auto found = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto& dtype) { return dtype.type == type; });
  return found == std::end(dtypes) ? nullptr : found;
}

const Dtype* find_dtype(const std::string& name) {
  auto found = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto& dtype) { return dtype.name == name; });
  return found == std::end(dtypes) ? nullptr : found;
}

uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel()) * static_cast<uint64_t>(tensor.element_size());
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.dtype() == b.dtype() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

/// One tensor as the header places it.
struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;  // in the data part
};

struct Header {
  std::vector<Entry> entries;  // in the order of the data
  std::map<std::string, std::string> metadata, tied;
  uint64_t data_begin;  // in the file
};

/// Reads and checks a file's header; each complaint names the file.
class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, std::ifstream& file, uint64_t size)
      : path_(path), file_(file), size_(size) {}

  Header read() {
    if (size_ < 8) fail("truncated: expected 8 bytes for the length of the header, got a file of " + text(size_));
    uint64_t length = 0;
    get(&length, 8);
    if (length > longest_header) {
      fail("not a safetensors file: its header would be " + text(length) + " bytes long (at most " +
           text(longest_header) + ")");
    }
    if (length > size_ - 8) {
      fail("truncated: expected a header of " + text(length) + " bytes, got a file of " + text(size_) + " in all");
    }
    std::string bytes(length, '\0');
    get(bytes.data(), length);
    Header header;
    header.data_begin = 8 + length;
    json parsed = parse(bytes);
    if (!parsed.is_object()) fail("the header is not a JSON object");
    for (auto& [name, value] : parsed.items()) {
      if (name == metadata_key) {
        header.metadata = metadata(value);
      } else {
        header.entries.push_back(entry(name, value));
      }
    }
    check_places(header);
    read_ties(header);
    return header;
  }

  [[noreturn]] void fail(const std::string& what) const { throw FileError(path_.string() + ": " + what); }

  void get(void* to, uint64_t bytes) {
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!file_) fail("cannot be read to its end");
  }

 private:
  static std::string text(uint64_t number) { return std::to_string(number); }

  json parse(const std::string& bytes) {
    std::vector<std::set<std::string>> keys;  // of each object that is open
    std::string repeated;
    auto watch = [&](int, json::parse_event_t event, json& value) {
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
      fail(std::string("the header is not JSON (") + error.what() + ")");
    }
    if (!repeated.empty()) fail("the header has \"" + repeated + "\" twice");
    return parsed;
  }

  std::map<std::string, std::string> metadata(const json& value) const {
    std::map<std::string, std::string> result;
    if (!value.is_object()) fail("__metadata__ is not a JSON object");
    for (auto& [key, item] : value.items()) {
      if (!item.is_string()) fail("__metadata__." + key + ": expected text, got " + item.dump());
      result[key] = item.get<std::string>();
    }
    return result;
  }

  Entry entry(const std::string& name, const json& value) const {
    auto number = [](const json& item) { return item.is_number_unsigned(); };
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value["dtype"].is_string() ||
        !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
        !value["data_offsets"].is_array() || value["data_offsets"].size() != 2 ||
        !std::all_of(value["shape"].begin(), value["shape"].end(), number) ||
        !std::all_of(value["data_offsets"].begin(), value["data_offsets"].end(), number)) {
      fail(name + ": expected {\"dtype\": text, \"shape\": [numbers], \"data_offsets\": [begin, end]}, got " +
           value.dump());
    }
    auto dtype = value["dtype"].get<std::string>();
    auto* known = find_dtype(dtype);
    if (!known) fail(name + ": unknown dtype " + dtype + " (known: " + dtype_names + ")");
    Entry result{name, known->type, {}, value["data_offsets"][0], value["data_offsets"][1]};
    uint64_t bytes = at::elementSize(known->type);
    bool too_large = false;
    for (auto& item : value["shape"]) {
      auto size = item.get<uint64_t>();
      constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
      too_large = too_large || size > limit || (size > 0 && bytes > limit / size);
      bytes *= size;
      result.shape.push_back(static_cast<int64_t>(size));
    }
    if (too_large) fail(name + ": the shape " + value["shape"].dump() + " is too large");
    if (result.begin > result.end || result.end - result.begin != bytes) {
      fail(name + ": " + dtype + " " + value["shape"].dump() + " needs " + text(bytes) +
           " bytes, but its data_offsets are " + value["data_offsets"].dump());
    }
    return result;
  }

  void check_places(Header& header) const {
    std::sort(header.entries.begin(), header.entries.end(), [](auto& a, auto& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    uint64_t end = 0;
    const std::string* before = nullptr;
    for (auto& entry : header.entries) {
      if (entry.begin != end) {
        fail(entry.name + ": its data begins at " + text(entry.begin) + ", expected " + text(end) +
             (before ? ", where " + *before + " ends" : std::string()) +
             (entry.begin < end ? " (they overlap)" : " (there is a gap)"));
      }
      end = entry.end;
      before = &entry.name;
    }
    auto data = size_ - header.data_begin;
    if (data < end) fail("truncated: expected " + text(end) + " bytes of tensors, got " + text(data));
    if (data > end) fail("expected " + text(end) + " bytes of tensors, got " + text(data) + ": bytes after the end");
  }

  void read_ties(Header& header) const {
    auto found = header.metadata.find(tied_key);
    if (found == header.metadata.end()) return;
    auto ties = json::parse(found->second, nullptr, false);
    if (!ties.is_object()) return;  // the word has another meaning in a file from elsewhere
    std::set<std::string> names;
    for (auto& entry : header.entries) names.insert(entry.name);
    for (auto& [name, first] : ties.items()) {
      if (!first.is_string() || !names.count(first.get<std::string>()) || names.count(name)) {
        fail("__metadata__.tied: " + name + " is tied to " + first.dump() + ", expected the name of another tensor");
      }
      header.tied[name] = first.get<std::string>();
    }
    header.metadata.erase(found);
  }

  const std::filesystem::path& path_;
  std::ifstream& file_;
  uint64_t size_;
};

struct Open {
  explicit Open(const std::filesystem::path& path) : file(path, std::ios::binary) {
    std::error_code code;
    auto size = std::filesystem::file_size(path, code);
    if (code) throw_file_error(path, "cannot be read", code.value());
    if (!file) throw_file_error(path, "cannot be read", errno);
    reader.emplace(path, file, size);
    header = reader->read();
  }
  std::ifstream file;
  std::optional<HeaderReader> reader;
  Header header;
};

}  // namespace

std::string dtype_name(at::ScalarType type) {
  auto* known = find_dtype(type);
  return known ? known->name : "(" + std::string(c10::toString(type)) + ")";
}

void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata) {
  auto fail = [&](const std::string& what) { throw FileError(path.string() + ": cannot be written: " + what); };
  std::vector<std::pair<const std::string*, const at::Tensor*>> first_names;
  std::map<const void*, std::vector<std::size_t>> by_address;
  json tied = json::object();
  for (auto& [name, tensor] : tensors) {
    if (!tensor.defined()) fail(name + " is an undefined tensor");
    if (name == metadata_key) fail(std::string("a tensor may not be named ") + metadata_key);
    if (!find_dtype(tensor.scalar_type())) {
      fail(name + " has the dtype " + c10::toString(tensor.scalar_type()) + ", which the format lacks (known: " +
           dtype_names + ")");
    }
    auto& same_address = by_address[tensor.data_ptr()];
    auto first = std::find_if(same_address.begin(), same_address.end(),
                              [&](auto i) { return same_tensor(*first_names[i].second, tensor); });
    if (first != same_address.end()) {
      tied[name] = *first_names[*first].first;
    } else {
      same_address.push_back(first_names.size());
      first_names.emplace_back(&name, &tensor);
    }
  }
  std::stable_sort(first_names.begin(), first_names.end(), [](auto& a, auto& b) {
    return find_dtype(a.second->scalar_type()) < find_dtype(b.second->scalar_type());
  });

  ordered_json header = ordered_json::object();
  auto all_metadata = metadata;
  if (!tied.empty() && !all_metadata.emplace(tied_key, tied.dump()).second) {
    fail("the metadata entry \"tied\" is taken");
  }
  if (!all_metadata.empty()) header[metadata_key] = all_metadata;
  uint64_t end = 0;
  for (auto& [name, tensor] : first_names) {
    auto begin = end;
    end += bytes_of(*tensor);
    header[*name] = {{"dtype", find_dtype(tensor->scalar_type())->name},
                     {"shape", tensor->sizes().vec()},
                     {"data_offsets", {begin, end}}};
  }
  std::string bytes;
  try {
    bytes = header.dump();
  } catch (const json::exception&) {
    fail("a name or the metadata is not UTF-8");
  }
  bytes.append((8 - bytes.size() % 8) % 8, ' ');
  uint64_t length = bytes.size();
  if (length > longest_header) fail("the header would be longer than " + std::to_string(longest_header) + " bytes");

  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(bytes);
  for (auto& [name, tensor] : first_names) {
    auto plain = tensor->detach().cpu().contiguous();
    file.write(plain.data_ptr(), bytes_of(plain));
  }
  file.commit();
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  Open open(path);
  Safetensors result;
  for (auto& entry : open.header.entries) {
    auto tensor = at::empty(entry.shape, at::TensorOptions().dtype(entry.type));
    if (tensor.numel() > 0) open.reader->get(tensor.data_ptr(), bytes_of(tensor));
    if (entry.type == at::kBool) {
      auto* values = static_cast<const uint8_t*>(tensor.data_ptr());
      if (std::any_of(values, values + tensor.numel(), [](auto value) { return value > 1; })) {
        open.reader->fail(entry.name + ": a BOOL is neither 0 nor 1");
      }
    }
    result.tensors.emplace(entry.name, tensor);
  }
  for (auto& [name, first] : open.header.tied) result.tensors.emplace(name, result.tensors.at(first));
  result.metadata = std::move(open.header.metadata);
  return result;
}

void check_safetensors(const std::filesystem::path& path) { Open open(path); }

}  // namespace headlab
