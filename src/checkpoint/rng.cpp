#include "src/checkpoint/rng.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <torch/cuda.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "modules/base/error.h"

namespace headlab {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string state_of(at::Generator generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  auto state = generator.get_state().contiguous();
  return base64_encode({static_cast<const char*>(state.data_ptr()), static_cast<std::size_t>(state.numel())});
}

void set_state(at::Generator generator, const nlohmann::json& text, const std::string& name) {
  if (!text.is_string()) throw FileError("random state of " + name + ": expected base64 text, got " + text.dump());
  auto bytes = base64_decode(text.get_ref<const std::string&>());
  auto state = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty()) std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  std::lock_guard<std::mutex> lock(generator.mutex());
  auto expected = generator.get_state().numel();
  if (state.numel() != expected) {
    throw FileError("random state of " + name + ": expected " + std::to_string(expected) + " bytes, got " +
                    std::to_string(state.numel()) + "; it was saved by another LibTorch or is damaged");
  }
  generator.set_state(state);
}

std::size_t cuda_devices() { return static_cast<std::size_t>(torch::cuda::device_count()); }

at::Generator cuda_generator(std::size_t device) {
  return at::globalContext().defaultGenerator(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    auto left = std::min<std::size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < left ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += j <= left ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string base64_decode(std::string_view text) {
  auto bad = [] { return FileError("not base64: expected groups of four of A-Z a-z 0-9 + /, the last padded with ="); };
  if (text.size() % 4 != 0) throw bad();
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    std::size_t padding = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      auto digit = digits.find(text[i + j]);
      bool is_padding = text[i + j] == '=' && j >= 2 && i + 4 == text.size();
      if (is_padding) ++padding;
      if (!is_padding && (digit == std::string_view::npos || padding > 0)) throw bad();
      group = group << 6 | (is_padding ? 0u : static_cast<uint32_t>(digit));
    }
    for (std::size_t j = 0; j < 3 - padding; ++j) bytes += static_cast<char>(group >> (16 - 8 * j) & 255);
  }
  return bytes;
}

nlohmann::json rng_states() {
  nlohmann::json states = {{"cpu", state_of(at::detail::getDefaultCPUGenerator())}};
  for (std::size_t device = 0; device < cuda_devices(); ++device) {
    states["cuda"].push_back(state_of(cuda_generator(device)));
  }
  return states;
}

void set_rng_states(const nlohmann::json& states) {
  if (!states.is_object() || !states.contains("cpu")) {
    throw FileError("random states: expected {\"cpu\": base64, \"cuda\": [base64, ...]}, got " + states.dump());
  }
  set_state(at::detail::getDefaultCPUGenerator(), states["cpu"], "the CPU");
  auto cuda = states.value("cuda", nlohmann::json::array());
  for (std::size_t device = 0; device < std::min(cuda.size(), cuda_devices()); ++device) {
    set_state(cuda_generator(device), cuda[device], "CUDA device " + std::to_string(device));
  }
}

}  // namespace headlab
