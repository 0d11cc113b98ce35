#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace headlab {

/// The header of a safetensors file (src/checkpoint/safetensors.h), read and checked without its tensors. No LibTorch.

/// A type of numbers that the format has.
struct TensorType {
  const char* name;
  uint64_t bytes;  // of one number
};

/// In the order in which their tensors lie in a file: no element size before a larger one.
constexpr TensorType tensor_types[] = {{"I64", 8}, {"F64", 8}, {"F32", 4}, {"I32", 4}, {"BF16", 2},
                                       {"F16", 2}, {"I16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
constexpr const char* tensor_type_names = "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL";

constexpr const char* safetensors_metadata_key = "__metadata__";
constexpr const char* safetensors_tied_key = "tied";
constexpr uint64_t longest_safetensors_header = 100'000'000;  // bytes; the limit of the reference implementation

/// One tensor as the header places it.
struct TensorEntry {
  std::string name;
  std::size_t type;  // in tensor_types
  std::vector<int64_t> shape;
  uint64_t begin, end;  // in the data part
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of the data: without overlaps, gaps or bytes behind them
  std::map<std::string, std::string> metadata, tied;  // tied: another name of an entry
  uint64_t data_begin = 0;                            // in the file
};

/// Reads the header of a file of `size` bytes; `get(to, bytes)` gives the next bytes of it, from its first on, and
/// throws where it can't. Throws FileError "<where>: what is wrong", whatever the bytes are.
SafetensorsHeader read_safetensors_header(uint64_t size, const std::function<void(void* to, uint64_t bytes)>& get,
                                          const std::string& where);

}  // namespace headlab
