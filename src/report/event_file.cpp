#include "src/report/event_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "src/report/run_view.h"

namespace headlab {
namespace {

// Numbers of the fields, as tensorflow's event.proto, summary.proto, histogram.proto and tensor.proto have them.
enum Wire : uint32_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
void put_key(std::string& to, uint32_t field, Wire wire) { put_varint(to, field << 3 | wire); }

/// The bytes of a number, the lowest first.
template <class Number>
void put_raw(std::string& to, Number value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(bits >> 8 * i);
}
void put_integer(std::string& to, uint32_t field, int64_t value) {
  put_key(to, field, varint);
  put_varint(to, static_cast<uint64_t>(value));
}
void put_double(std::string& to, uint32_t field, double value) {
  put_key(to, field, eight_bytes);
  put_raw(to, value);
}
void put_bytes(std::string& to, uint32_t field, std::string_view value) {
  put_key(to, field, bytes);
  put_varint(to, value.size());
  to += value;
}
void put_doubles(std::string& to, uint32_t field, const std::vector<double>& values) {
  std::string packed;
  for (auto value : values) put_raw(packed, value);
  put_bytes(to, field, packed);
}

/// Event { wall_time = 1, step = 2, summary = 5 { value = 1 } }
std::string event_of(double wall_time, int64_t step, const std::string& value) {
  std::string summary, event;
  put_bytes(summary, 1, value);
  put_double(event, 1, wall_time);
  put_integer(event, 2, step);
  put_bytes(event, 5, summary);
  return event;
}

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    auto value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
    table[i] = value;
  }
  return table;
}

std::string in_code(const nlohmann::ordered_json& value) {
  return "    " + [&] {
    auto text = report::dump(value, 2);
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 5) text.replace(at, 1, "\n    ");
    return text;
  }();
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

uint32_t masked_crc32c(std::string_view bytes) {
  static const auto table = crc_table();
  uint32_t crc = 0xffffffffu;
  for (unsigned char byte : bytes) crc = table[(crc ^ byte) & 0xff] ^ crc >> 8;
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

EventFile::EventFile(const std::filesystem::path& path, double wall_time)
    : path_(path), file_(path, std::ios::binary | std::ios::trunc) {
  std::string event;
  put_double(event, 1, wall_time);
  put_bytes(event, 3, "brain.Event:2");
  record(event);
}

void EventFile::record(const std::string& event) {
  std::string length, whole;
  put_raw(length, static_cast<uint64_t>(event.size()));
  whole = length;
  put_raw(whole, masked_crc32c(length));
  whole += event;
  put_raw(whole, masked_crc32c(event));
  file_.write(whole.data(), static_cast<std::streamsize>(whole.size()));
  file_.flush();
  if (!file_) throw FileError("can't write " + path_.string());
}

void EventFile::scalar(const std::string& tag, int64_t step, double value, double wall_time) {
  std::string one;
  put_bytes(one, 1, tag);
  put_key(one, 2, four_bytes);
  put_raw(one, static_cast<float>(value));
  record(event_of(wall_time, step, one));
}

void EventFile::histogram(const std::string& tag, int64_t step, const std::vector<double>& values, double wall_time,
                          int buckets) {
  std::vector<double> finite;
  for (auto value : values)
    if (std::isfinite(value)) finite.push_back(value);
  if (finite.empty()) return;
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  const auto width = *high > *low ? (*high - *low) / buckets : 1.0;
  std::vector<double> limits, counts;
  for (int i = 1; i <= (*high > *low ? buckets : 1); ++i) {
    limits.push_back(*low + width * i);
    counts.push_back(0);
  }
  if (*high > *low) limits.back() = *high;
  double sum = 0, squares = 0;
  for (auto value : finite) {
    ++counts[std::min(counts.size() - 1, static_cast<std::size_t>((value - *low) / width))];
    sum += value;
    squares += value * value;
  }
  std::string histogram, one;
  put_double(histogram, 1, *low);
  put_double(histogram, 2, *high);
  put_double(histogram, 3, static_cast<double>(finite.size()));
  put_double(histogram, 4, sum);
  put_double(histogram, 5, squares);
  put_doubles(histogram, 6, limits);
  put_doubles(histogram, 7, counts);
  put_bytes(one, 1, tag);
  put_bytes(one, 5, histogram);
  record(event_of(wall_time, step, one));
}

void EventFile::text(const std::string& tag, int64_t step, const std::string& markdown, double wall_time) {
  std::string tensor, plugin, metadata, one;
  put_integer(tensor, 1, 7);  // DT_STRING, of no dimensions
  put_bytes(tensor, 2, "");
  put_bytes(tensor, 8, markdown);
  put_bytes(plugin, 1, "text");
  put_bytes(metadata, 1, plugin);
  put_bytes(one, 1, tag);
  put_bytes(one, 9, metadata);
  put_bytes(one, 8, tensor);
  record(event_of(wall_time, step, one));
}

void add_row(EventFile& events, const nlohmann::json& row, double wall_time) {
  const auto stage = row.value("stage", std::string()), before = stage.empty() ? std::string() : stage + "/";
  const auto step = row.value("step", int64_t{0});
  const auto add = [&](const auto& add, const std::string& prefix, const nlohmann::json& values) -> void {
    for (const auto& [key, value] : values.items()) {
      if (key == "stage" || key == "step") continue;
      if (value.is_object()) add(add, prefix + key + "/", value);
      if (value.is_number()) events.scalar(prefix + key, step, value.template get<double>(), wall_time);
    }
  };
  add(add, before, row);
}

void add_results(EventFile& events, const nlohmann::ordered_json& results, const nlohmann::ordered_json& spec,
                 double wall_time) {
  using namespace report;
  std::string about = "**" + text_of(results, "name") + "** " + text_of(results, "question") + "\n\n";
  for (const auto& claim : member(results, "expect"))
    if (claim.is_object())
      about += "- " + std::string(member(claim, "holds") == true ? "holds: " : "does not hold: ") +
               text_of(claim, "claim") + "\n";
  if (const auto command = text_of(results, "command"); !command.empty()) about += "\n    " + command + "\n";
  events.text("run", 0, about, wall_time);
  events.text("spec", 0, in_code(spec), wall_time);
  const auto& stages = member(results, "stages");
  if (!stages.is_object()) return;
  for (const auto& [name, stage] : stages.items()) {
    const auto& samples = member(stage, "samples");
    if (samples.is_array() && !samples.empty()) {
      std::string table = "| source | reference | hypothesis |\n|---|---|---|\n";
      const auto cell = [](std::string text) {
        for (std::size_t at = 0; (at = text.find_first_of("|\r\n", at)) != std::string::npos; ++at)
          if (text[at] != '|')
            text[at] = ' ';
          else
            text.insert(at++, "\\");
        return text;
      };
      for (const auto& sample : samples)
        table += "| " + cell(text_of(sample, "source")) + " | " + cell(text_of(sample, "reference")) + " | " +
                 cell(text_of(sample, "hypothesis")) + " |\n";
      events.text(name + "/samples", 0, table, wall_time);
    }
    if (text_of(stage, "type") == "score") {
      std::vector<double> scores;
      for (const auto& [head, score] : member(stage, "heads").items())
        if (score.is_number()) scores.push_back(score.get<double>());
      events.histogram(name + "/heads", 0, scores, wall_time);
    }
    const auto& metrics = member(stage, "metrics");
    if (metrics.is_object())
      for (const auto& [metric, value] : metrics.items())
        if (value.is_number()) events.scalar(name + "/" + metric, 0, value.get<double>(), wall_time);
  }
}

}  // namespace headlab
