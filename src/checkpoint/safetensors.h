#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

namespace headlab {

/// Named tensors in the order of their names.
using TensorMap = std::map<std::string, at::Tensor>;

/// A file in the safetensors format (github.com/huggingface/safetensors): 8 bytes, the length of the header as a
/// little-endian integer; a JSON header {"<name>": {"dtype", "shape", "data_offsets"}, "__metadata__": {text: text}};
/// the tensors' bytes without gaps. Known dtypes: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL.
struct Safetensors {
  TensorMap tensors;                            // on the CPU, contiguous
  std::map<std::string, std::string> metadata;  // free text
};

/// Writes atomically. The file is a function of the names, values and metadata alone, and equal to what the Python
/// package writes: tensors lie in the order of dtype (I64 F64 F32 I32 BF16 F16 I16 I8 U8 BOOL: all are aligned), then
/// of their names.
///
/// Names of one and the same tensor (equal storage, offset, shape and strides) are written once, under the first of
/// the names; the others are listed in the metadata entry "tied", a JSON object {other name: first name}, and come back
/// from read_safetensors as the same tensor. Tensors on other devices and non-contiguous ones are copied, one by one.
///
/// Throws FileError for a file that cannot be written, an unknown dtype, and a name that the format cannot hold.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Throws FileError, which names the file and what is wrong with it: missing, truncated, a header length that cannot
/// be, a header that is not JSON or not of this format, unknown dtypes, repeated names, sizes that do not fit shapes,
/// tensors that overlap or leave gaps, bytes after the end.
Safetensors read_safetensors(const std::filesystem::path& path);

/// Throws as read_safetensors does, but reads no tensor data: cheap for large files.
void check_safetensors(const std::filesystem::path& path);

/// "F32" for at::kFloat; the name of the type in parentheses where the format has none.
std::string dtype_name(at::ScalarType type);

}  // namespace headlab
