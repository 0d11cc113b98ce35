#include <algorithm>
#include <cstring>
#include <set>

#include "modules/base/error.h"
#include "src/checkpoint/json_file.h"
#include "src/checkpoint/safetensors_header.h"
#include "tools/fuzz/targets.h"

namespace headlab::fuzz {
namespace {

constexpr const char* of_checkpoint = "checkpoint";

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

void check(const SafetensorsHeader& header, std::size_t size) {
  uint64_t end = 0;
  std::set<std::string> names;
  for (const auto& tensor : header.entries) {
    if (tensor.begin != end) broken(of_checkpoint, "tensors that overlap or leave a gap");
    end = tensor.end;
    uint64_t bytes = tensor_types[tensor.type].bytes;
    for (const auto length : tensor.shape) {
      if (length < 0) broken(of_checkpoint, "a negative size");
      bytes *= static_cast<uint64_t>(length);
    }
    if (tensor.end - tensor.begin != bytes) broken(of_checkpoint, "a tensor of another size than its shape");
    if (!names.insert(tensor.name).second) broken(of_checkpoint, "a name twice");
  }
  if (header.data_begin + end != size) broken(of_checkpoint, "data that ends elsewhere than the file");
  for (const auto& [name, first] : header.tied)
    if (!names.count(first) || names.count(name))
      broken(of_checkpoint, "a tie to nothing, or of a tensor that is there");
}

}  // namespace

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

int fuzz_checkpoint(const uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  may_refuse(of_checkpoint, [&] {
    if (!bytes.empty() && bytes[0] == '{') {
      const auto state = parse_json(bytes, "state.json");
      if (parse_json(state.dump(), "state.json") != state) broken(of_checkpoint, "a state that reads back as another");
      shown(state);
      return;
    }
    std::size_t at = 0;
    const auto get = [&](void* to, uint64_t count) {
      if (count > size - at) broken(of_checkpoint, "more bytes were read than the file has");
      std::memcpy(to, bytes.data() + at, static_cast<std::size_t>(count));
      at += static_cast<std::size_t>(count);
    };
    check(read_safetensors_header(size, get, "x"), size);
  });
  return 0;
}

std::vector<std::string> checkpoint_seeds() {
  return {
      safetensors_bytes("{}", ""),
      safetensors_bytes("{" + entry("a", "F32", "[2,2]", 0, 16) + "," + entry("b", "U8", "[3]", 16, 19) + "}  ",
                        std::string(19, '\1')),
      safetensors_bytes("{\"__metadata__\":{\"tied\":\"{\\\"c\\\":\\\"a\\\"}\",\"format\":\"pt\"}," +
                            entry("a", "BF16", "[]", 0, 2) + "," + entry("none", "I64", "[0,64]", 2, 2) + "}",
                        std::string(2, '\0')),
      safetensors_bytes(
          "{" + entry("encoder.layers.0.weight", "F64", "[1]", 8, 16) + "," + entry("t", "BOOL", "[8]", 0, 8) + "}",
          std::string(16, '\0')),
      R"({"format":1,"step":3,"data":{"epoch":1,"batch":2},"rng":{"cpu":"AAAA"},"recent":{"loss":1.5,"aux":{}},"heads":{"enc.self":[[0,1],[]]}})"};
}

std::string mutate_checkpoint(const std::string& input, Random& random) {
  static const std::vector<std::string> words{"\"dtype\"",
                                              "\"shape\"",
                                              "\"data_offsets\"",
                                              "\"__metadata__\"",
                                              "\"tied\"",
                                              "\"a\"",
                                              "\"b\"",
                                              "\"F32\"",
                                              "\"U8\"",
                                              "\"F4\"",
                                              "\"BOOL\"",
                                              "[0,4]",
                                              "[4,0]",
                                              "[1]",
                                              "[-1]",
                                              "[0,9223372036854775807,9223372036854775807]",
                                              "[4611686018427387904,4]",
                                              "[1.0]",
                                              "16",
                                              "{\"a\":\"b\"}",
                                              "\"{\\\"x\\\":\\\"a\\\"}\"",
                                              "\"[[[[[[\"",
                                              "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                                              "\"format\"",
                                              "1"};
  if (!input.empty() && input[0] == '{') return mutate_json(input, words, random);
  if (input.size() < 8 || random.below(5) == 0) return mutate_bytes(input, characters("{}\0\1\xFF\"[]"), random);
  uint64_t length = 0;
  std::memcpy(&length, input.data(), 8);
  const auto cut = std::min<uint64_t>(length, input.size() - 8);
  auto header = mutate_json(input.substr(8, static_cast<std::size_t>(cut)), words, random);
  auto data = input.substr(8 + static_cast<std::size_t>(cut));
  if (random.below(4) == 0) data.resize(static_cast<std::size_t>(random.below(40)));
  return safetensors_bytes(header, data);
}

}  // namespace headlab::fuzz
