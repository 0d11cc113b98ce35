#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

/// WAV files, written by hand (RIFF with one format and one data chunk), so that reading them is tested against their
/// bytes.
namespace headlab::test {

struct Wav {
  std::vector<int64_t> samples;  // channel by channel within each moment; 8 bits from 0 to 255, others signed
  int64_t bits = 16, channels = 1, rate = 8000, format = 1;  // 1: whole numbers; 3: `samples` are the bits of floats

  std::string bytes() const {
    std::string data;
    for (const auto sample : samples) put(data, sample, bits / 8);
    std::string head = "WAVEfmt ";
    put(head, 16, 4);
    put(head, format, 2);
    put(head, channels, 2);
    put(head, rate, 4);
    put(head, rate * channels * bits / 8, 4);
    put(head, channels * bits / 8, 2);
    put(head, bits, 2);
    head += "data";
    put(head, static_cast<int64_t>(data.size()), 4);
    std::string whole = "RIFF";
    put(whole, static_cast<int64_t>(head.size() + data.size()), 4);
    return whole + head + data;
  }
  void write(const std::string& path) const { std::ofstream(path, std::ios::binary) << bytes(); }

 private:
  static void put(std::string& bytes, int64_t value, int64_t count) {
    for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  }
};

}  // namespace headlab::test
