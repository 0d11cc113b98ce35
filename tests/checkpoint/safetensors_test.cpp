#include "src/checkpoint/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

std::string file_bytes(const std::string& header, const std::string& data, uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}
std::string file_bytes(const std::string& header, const std::string& data = "") {
  return file_bytes(header, data, header.size());
}

struct Expected {
  const char* why;
  std::string bytes;
  std::string message;
};

}  // namespace

TEST_CASE("safetensors give back every dtype, shape, value and the metadata", "[checkpoint]") {
  torch::manual_seed(1);
  TensorMap tensors = {{"f64", torch::randn({2, 3}, torch::kDouble)},
                       {"f32", torch::randn({4})},
                       {"f16", torch::randn({2, 1, 2}).to(torch::kHalf)},
                       {"bf16", torch::randn({3}).to(torch::kBFloat16)},
                       {"i64", torch::tensor({INT64_MIN, INT64_MAX}, torch::kLong)},
                       {"i32", torch::tensor({-5, 7}, torch::kInt)},
                       {"i16", torch::tensor({-5, 7}, torch::kShort)},
                       {"i8", torch::tensor({-128, 127}, torch::kChar)},
                       {"u8", torch::tensor({0, 255}, torch::kByte)},
                       {"bool", torch::tensor({true, false, true})},
                       {"scalar", torch::tensor(1.5f)},
                       {"no heads", torch::empty({0, 64})},
                       {"transposed", torch::randn({3, 5}).t()},
                       {"non-finite", torch::tensor({INFINITY, -INFINITY, -0.0f})},
                       {"näme \"quoted\"", torch::ones({1})}};
  Scratch scratch;
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {"spec", "{\"name\": \"ü\\n\"}"}};
  write_safetensors(scratch / "a.safetensors", tensors, metadata);
  auto back = read_safetensors(scratch / "a.safetensors");
  CHECK(back.metadata == metadata);
  REQUIRE(back.tensors.size() == tensors.size());
  for (auto& [name, tensor] : tensors) {
    CAPTURE(name);
    auto& got = back.tensors.at(name);
    CHECK(got.dtype() == tensor.dtype());
    CHECK(got.sizes() == tensor.sizes());
    CHECK(got.equal(tensor));
  }
  CHECK(std::signbit(back.tensors.at("non-finite")[2].item<float>()));
}

TEST_CASE("equal tensors make equal files, data lies aligned", "[checkpoint]") {
  Scratch scratch;
  auto make = [](bool other_order) {
    TensorMap tensors;
    auto add = [&](const char* name, torch::Tensor tensor) { tensors[name] = tensor; };
    if (other_order)
      add("b", torch::ones({3}, torch::kByte)), add("a", torch::ones({2}, torch::kDouble));
    else
      add("a", torch::ones({2}, torch::kDouble)), add("b", torch::ones({3}, torch::kByte));
    return tensors;
  };
  write_safetensors(scratch / "1", make(false));
  write_safetensors(scratch / "2", make(true));
  auto bytes = read_file(scratch / "1");
  CHECK(bytes == read_file(scratch / "2"));
  std::string header = R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
                       R"("b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  CHECK(bytes.substr(8, header.size()) == header);
  CHECK(bytes.size() == 8 + header.size() + 19);
}

TEST_CASE("a tied tensor is written once and comes back tied", "[checkpoint]") {
  Scratch scratch;
  auto weight = torch::randn({100, 8});
  TensorMap tensors = {{"encoder.embedding", weight}, {"decoder.embedding", weight},
                       {"first row", weight[0]},      // the same address, but another tensor
                       {"flat", weight.view({800})},  // the same storage, another shape
                       {"gone.a", torch::empty({0})}, {"gone.b", torch::empty({0})}};
  write_safetensors(scratch / "a", tensors);
  CHECK(std::filesystem::file_size(scratch / "a") < 2 * 3200 + 32 + 1000);
  auto back = read_safetensors(scratch / "a");
  CHECK(back.metadata.empty());
  REQUIRE(back.tensors.size() == 6);
  CHECK(back.tensors.at("encoder.embedding").is_alias_of(back.tensors.at("decoder.embedding")));
  CHECK_FALSE(back.tensors.at("flat").is_alias_of(back.tensors.at("decoder.embedding")));
  for (auto& [name, tensor] : tensors) CHECK(back.tensors.at(name).equal(tensor));
}

TEST_CASE("a tensor that the format cannot hold is refused before anything is written", "[checkpoint]") {
  Scratch scratch;
  auto path = scratch / "a";
  CHECK_THROWS_WITH(write_safetensors(path, {{"z", torch::zeros({1}, torch::kComplexFloat)}}),
                    ContainsSubstring("z has the dtype ComplexFloat, which the format lacks (known: F64 F32"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"u", torch::Tensor()}}), ContainsSubstring("u is an undefined tensor"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"__metadata__", torch::ones({1})}}), ContainsSubstring("__metadata__"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"\xff", torch::ones({1})}}), ContainsSubstring("not UTF-8"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a damaged or foreign safetensors file is refused with what is wrong", "[checkpoint]") {
  auto f32 = [](const std::string& shape, const std::string& offsets) {
    return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  std::string eight(8, '\0'), twelve(12, '\0');
  std::vector<Expected> cases = {
      {"empty", "", "truncated: expected 8 bytes for the length of the header, got a file of 0"},
      {"short", "abc", "truncated: expected 8 bytes for the length of the header, got a file of 3"},
      {"absurd length", file_bytes("{}", "", UINT64_MAX),
       "not a safetensors file: its header would be 18446744073709551615"},
      {"cut header", file_bytes("{}", "", 50), "truncated: expected a header of 50 bytes, got a file of 10 in all"},
      {"not JSON", file_bytes("{\"a\":"), "the header is not JSON"},
      {"not UTF-8", file_bytes("{\"\xff\":1}"), "the header is not JSON"},
      {"a list", file_bytes("[]"), "the header is not a JSON object"},
      {"a text for a tensor", file_bytes(R"({"a":"b"})"), "a: expected {\"dtype\": text"},
      {"negative size", file_bytes("{\"a\":" + f32("[-1]", "[0,4]") + "}"), "a: expected {\"dtype\": text"},
      {"fraction", file_bytes("{\"a\":" + f32("[1.5]", "[0,4]") + "}"), "a: expected {\"dtype\": text"},
      {"unknown dtype", file_bytes(R"({"a":{"dtype":"F4","shape":[],"data_offsets":[0,4]}})"),
       "a: unknown dtype F4 (known"},
      {"twice", file_bytes("{\"a\":" + f32("[1]", "[0,4]") + ",\"a\":" + f32("[1]", "[4,8]") + "}", eight),
       "the header has \"a\" twice"},
      {"wrong size", file_bytes("{\"a\":" + f32("[2]", "[0,4]") + "}", eight),
       "a: F32 [2] needs 8 bytes, but its data_offsets are [0,4]"},
      {"backwards", file_bytes("{\"a\":" + f32("[1]", "[4,0]") + "}", eight), "a: F32 [1] needs 4 bytes"},
      {"overflow", file_bytes("{\"a\":" + f32("[4611686018427387904,4]", "[0,0]") + "}"), "is too large"},
      {"size above int64", file_bytes("{\"a\":" + f32("[0,9223372036854775808]", "[0,0]") + "}"), "is too large"},
      {"overlap", file_bytes("{\"a\":" + f32("[2]", "[0,8]") + ",\"b\":" + f32("[2]", "[4,12]") + "}", twelve),
       "b: its data begins at 4, expected 8, where a ends (they overlap)"},
      {"gap", file_bytes("{\"a\":" + f32("[1]", "[0,4]") + ",\"b\":" + f32("[1]", "[8,12]") + "}", twelve),
       "b: its data begins at 8, expected 4, where a ends (there is a gap)"},
      {"late start", file_bytes("{\"a\":" + f32("[1]", "[4,8]") + "}", eight), "a: its data begins at 4, expected 0"},
      {"cut data", file_bytes("{\"a\":" + f32("[2]", "[0,8]") + "}", "1234"),
       "truncated: expected 8 bytes of tensors, got 4"},
      {"bytes after the end", file_bytes("{\"a\":" + f32("[1]", "[0,4]") + "}", eight),
       "expected 4 bytes of tensors, got 8: bytes after the end"},
      {"metadata", file_bytes(R"({"__metadata__":{"a":1}})"), "__metadata__.a: expected text, got 1"},
      {"tie to nothing", file_bytes(R"({"__metadata__":{"tied":"{\"b\":\"a\"}"}})"),
       "b is tied to \"a\", expected the name"},
      {"not a bool", file_bytes(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02"),
       "a: a BOOL is neither 0 nor 1"},
  };
  Scratch scratch;
  auto path = scratch / "x.safetensors";
  for (auto& [why, bytes, message] : cases) {
    CAPTURE(why);
    write_file_atomically(path, bytes);
    CHECK_THROWS_AS(read_safetensors(path), FileError);
    CHECK_THROWS_WITH(read_safetensors(path), ContainsSubstring(path.string() + ": ") && ContainsSubstring(message));
  }
  CHECK_THROWS_WITH(read_safetensors(scratch / "none"), ContainsSubstring("none: cannot be read: no such file"));
  CHECK_THROWS_AS(read_safetensors(scratch.path), FileError);
}

TEST_CASE("a safetensors file cut anywhere is refused", "[checkpoint]") {
  Scratch scratch;
  write_safetensors(scratch / "a", {{"a", torch::ones({3})}, {"b", torch::ones({2}, torch::kByte)}}, {{"k", "v"}});
  auto bytes = read_file(scratch / "a");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    write_file_atomically(scratch / "cut", bytes.substr(0, length));
    CHECK_THROWS_AS(check_safetensors(scratch / "cut"), FileError);
  }
  CHECK_NOTHROW(check_safetensors(scratch / "a"));
}
