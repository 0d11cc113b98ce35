#include "src/checkpoint/safetensors.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "src/checkpoint/safetensors_header.h"

namespace headlab {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it lies in memory");

// In the order of tensor_types.
constexpr at::ScalarType scalar_types[] = {at::kLong, at::kDouble, at::kFloat, at::kInt,  at::kBFloat16,
                                           at::kHalf, at::kShort,  at::kChar,  at::kByte, at::kBool};
static_assert(std::size(scalar_types) == std::size(tensor_types));

/// The place of a type in both tables; their size where the format lacks it.
std::size_t place_of(at::ScalarType type) {
  return static_cast<std::size_t>(std::find(std::begin(scalar_types), std::end(scalar_types), type) -
                                  std::begin(scalar_types));
}
bool has_type(const at::Tensor& tensor) { return place_of(tensor.scalar_type()) < std::size(scalar_types); }

uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel()) * static_cast<uint64_t>(tensor.element_size());
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.dtype() == b.dtype() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

/// A file whose header was read and checked.
struct Open {
  explicit Open(const std::filesystem::path& path) : path(path), file(path, std::ios::binary) {
    std::error_code code;
    auto size = std::filesystem::file_size(path, code);
    if (code) throw_file_error(path, "cannot be read", code.value());
    if (!file) throw_file_error(path, "cannot be read", errno);
    header = read_safetensors_header(size, [this](void* to, uint64_t bytes) { get(to, bytes); }, path.string());
  }
  void get(void* to, uint64_t bytes) {
    file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!file) fail("cannot be read to its end");
  }
  [[noreturn]] void fail(const std::string& what) const { throw FileError(path.string() + ": " + what); }
  const std::filesystem::path& path;
  std::ifstream file;
  SafetensorsHeader header;
};

}  // namespace

std::string dtype_name(at::ScalarType type) {
  const auto place = place_of(type);
  return place < std::size(tensor_types) ? tensor_types[place].name : "(" + std::string(c10::toString(type)) + ")";
}

void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata) {
  auto fail = [&](const std::string& what) { throw FileError(path.string() + ": cannot be written: " + what); };
  std::vector<std::pair<const std::string*, const at::Tensor*>> first_names;
  std::map<const void*, std::vector<std::size_t>> by_address;
  json tied = json::object();
  for (auto& [name, tensor] : tensors) {
    if (!tensor.defined()) fail(name + " is an undefined tensor");
    if (name == safetensors_metadata_key) fail(std::string("a tensor may not be named ") + safetensors_metadata_key);
    if (!has_type(tensor)) {
      fail(name + " has the dtype " + c10::toString(tensor.scalar_type()) +
           ", which the format lacks (known: " + tensor_type_names + ")");
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
    return place_of(a.second->scalar_type()) < place_of(b.second->scalar_type());
  });

  ordered_json header = ordered_json::object();
  auto all_metadata = metadata;
  if (!tied.empty() && !all_metadata.emplace(safetensors_tied_key, tied.dump()).second) {
    fail("the metadata entry \"tied\" is taken");
  }
  if (!all_metadata.empty()) header[safetensors_metadata_key] = all_metadata;
  uint64_t end = 0;
  for (auto& [name, tensor] : first_names) {
    auto begin = end;
    end += bytes_of(*tensor);
    header[*name] = {
        {"dtype", dtype_name(tensor->scalar_type())}, {"shape", tensor->sizes().vec()}, {"data_offsets", {begin, end}}};
  }
  std::string bytes;
  try {
    bytes = header.dump();
  } catch (const json::exception&) {
    fail("a name or the metadata is not UTF-8");
  }
  bytes.append((8 - bytes.size() % 8) % 8, ' ');
  uint64_t length = bytes.size();
  if (length > longest_safetensors_header)
    fail("the header would be longer than " + std::to_string(longest_safetensors_header) + " bytes");

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
    const auto type = scalar_types[entry.type];
    auto tensor = at::empty(entry.shape, at::TensorOptions().dtype(type));
    if (tensor.numel() > 0) open.get(tensor.data_ptr(), bytes_of(tensor));
    if (type == at::kBool) {
      auto* values = static_cast<const uint8_t*>(tensor.data_ptr());
      if (std::any_of(values, values + tensor.numel(), [](auto value) { return value > 1; })) {
        open.fail(entry.name + ": a BOOL is neither 0 nor 1");
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
