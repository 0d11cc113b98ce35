#include "src/terminal/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace headlab {
namespace {

constexpr int64_t label_columns = 10;

std::string printed(const char* format, double number) {
  char text[400];  // the longest double has 309 digits before the point
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string two_digits(int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

int64_t whole_seconds(double seconds) {
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds, 0.0, 1e12)) : 0;
}

struct Character {
  uint32_t code;
  std::size_t bytes;
};

/// The character at `at`; a byte that is not UTF-8 stands for itself.
Character character_at(const std::string& text, std::size_t at) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto first = byte(at);
  std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length <= 1 || at + length > text.size()) return {first, 1};
  uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {first, 1};
    code = code << 6 | (byte(at + i) & 0x3fu);
  }
  return {code, length};
}

struct Range {
  uint32_t first, last;
};
// The blocks that matter, after Unicode's EastAsianWidth and the general category Mn.
constexpr Range no_width[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
                              {0x93a, 0x93a},   {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},   {0xe31, 0xe31},
                              {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                              {0x20d0, 0x20f0}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
constexpr Range double_width[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
                                  {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
                                  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <std::size_t N>
bool within(const Range (&ranges)[N], uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges), [&](auto& r) { return code >= r.first && code <= r.last; });
}

int64_t width_of(uint32_t code) { return within(no_width, code) ? 0 : within(double_width, code) ? 2 : 1; }

}  // namespace

std::string with_commas(int64_t number) {
  auto text = std::to_string(number);
  std::size_t first = number < 0 ? 1 : 0;
  for (auto at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string short_number(double number) {
  if (!std::isfinite(number)) return fixed(number, 0);
  constexpr const char* prefixes[] = {"", "k", " M", " G", " T", " P"};
  double left = std::abs(number);
  std::size_t prefix = 0;
  // 999.95 would be written as 1000.0.
  while (left >= (prefix == 0 ? 999.5 : 999.95) && prefix + 1 < std::size(prefixes)) left /= 1000, ++prefix;
  bool whole = prefix == 0 && left == std::floor(left);
  int digits = whole ? 0 : prefix > 0 ? 1 : left >= 10 ? 1 : left >= 0.1 || left == 0 ? 2 : -1;
  auto text = digits < 0 ? printed("%.2g", left) : fixed(left, digits);
  return (number < 0 ? "-" : "") + text + prefixes[prefix];
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 9.95) return fixed(seconds, 1) + " s";
  auto all = whole_seconds(seconds);
  if (all < 60) return std::to_string(all) + " s";
  if (all < 3600) return std::to_string(all / 60) + " min " + std::to_string(all % 60) + " s";
  auto minutes = (all + 30) / 60;
  if (minutes < 24 * 60) return std::to_string(minutes / 60) + " h " + two_digits(minutes % 60) + " min";
  auto hours = (all + 1800) / 3600;
  return std::to_string(hours / 24) + " d " + std::to_string(hours % 24) + " h";
}

std::string clock_text(double seconds) {
  auto all = whole_seconds(seconds);
  auto rest = two_digits(all % 60);
  if (all < 3600) return std::to_string(all / 60) + ":" + rest;
  return std::to_string(all / 3600) + ":" + two_digits(all / 60 % 60) + ":" + rest;
}

std::string byte_count(double bytes) {
  constexpr const char* units[] = {" B", " kB", " MB", " GB", " TB", " PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(units)) bytes /= 1000, ++unit;
  return fixed(bytes, unit > 0 && bytes < 99.95 ? 1 : 0) + units[unit];
}

std::string fixed(double number, int digits) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  auto text = printed(("%." + std::to_string(digits) + "f").c_str(), number);
  bool zero = text.find_first_of("123456789") == std::string::npos;
  return zero && text[0] == '-' ? text.substr(1) : text;
}

std::string fixed_signed(double number, int digits) {
  auto text = fixed(number, digits);
  bool zero = text.find_first_not_of("0.") == std::string::npos;
  return number > 0 && !zero ? "+" + text : text;
}

int64_t text_width(const std::string& text) {
  int64_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    auto character = character_at(text, at);
    width += width_of(character.code);
    at += character.bytes;
  }
  return width;
}

std::string shortened(const std::string& text, int64_t columns) {
  if (text_width(text) <= columns) return text;
  if (columns <= 0) return "";
  int64_t width = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    auto character = character_at(text, at);
    if (width + width_of(character.code) > columns - 1) break;
    width += width_of(character.code);
    at += character.bytes;
  }
  return text.substr(0, at) + "…";
}

std::string padded(const std::string& text, int64_t columns) {
  return text + std::string(static_cast<std::size_t>(std::max<int64_t>(0, columns - text_width(text))), ' ');
}

std::string padded_left(const std::string& text, int64_t columns) {
  return std::string(static_cast<std::size_t>(std::max<int64_t>(0, columns - text_width(text))), ' ') + text;
}

std::string labelled(const std::string& label, const std::string& text) {
  return "  " + padded(label, label_columns) + " " + text;
}

}  // namespace headlab
