#include "src/report/head_map.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "src/report/figures.h"
#include "src/report/html.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

using Colour = std::array<double, 3>;
constexpr Colour sequential[] = {{242, 246, 252}, {190, 213, 238}, {115, 169, 217}, {43, 115, 182}, {8, 58, 122}};
constexpr Colour diverging[] = {{166, 70, 0}, {239, 155, 81}, {247, 246, 244}, {128, 181, 222}, {14, 84, 158}};

template <std::size_t N>
Colour between(const Colour (&stops)[N], double share) {
  double place = (std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.5) * (N - 1);
  auto first = std::min(static_cast<std::size_t>(place), N - 2);
  Colour result;
  for (std::size_t i = 0; i < 3; ++i) {
    result[i] = std::lerp(stops[first][i], stops[first + 1][i], place - static_cast<double>(first));
  }
  return result;
}

std::string hex(const Colour& colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(std::lround(colour[0])) & 255u,
                static_cast<unsigned>(std::lround(colour[1])) & 255u,
                static_cast<unsigned>(std::lround(colour[2])) & 255u);
  return text;
}

/// Relative luminance (WCAG 2): where black text reads better than white.
bool is_light(const Colour& colour) {
  auto linear = [](double c) {
    return c / 255 <= 0.04045 ? c / 255 / 12.92 : std::pow((c / 255 + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]) > 0.179;
}

std::string filled(const Colour& colour) {
  return "background-color:" + hex(colour) + ";color:" + (is_light(colour) ? "#111" : "#fff");
}

constexpr std::pair<const char*, const char*> stack_titles[] = {{"enc.self", "encoder self-attention"},
                                                                {"dec.self", "decoder self-attention"},
                                                                {"dec.cross", "decoder cross-attention"}};

std::string stack_title(const std::string& stack) {
  for (auto& [name, title] : stack_titles) {
    if (stack == name) return title;
  }
  return "";
}

std::string name_of(const std::string& stack, int64_t layer, int64_t head) {
  return stack + "." + std::to_string(layer) + "." + std::to_string(head);
}

/// The grids of all stacks; `cell` gives the <td> of a head.
template <class CellOf>
std::string grids(const StackSizes& sizes, const std::string& title, CellOf cell) {
  std::string result = "<div class=\"maps\">";
  for (auto& stack : sizes.stacks()) {
    auto size = sizes.sizes.at(stack);
    result += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
              html::escape(title + ", " + stack) + "\"><table class=\"map\"><caption><b>" + html::escape(stack) +
              "</b> " + html::escape(stack_title(stack)) +
              "</caption><thead><tr><th scope=\"col\"><small>layer \\ head</small></th>";
    for (int64_t head = 0; head < size.heads; ++head) result += "<th scope=\"col\">" + std::to_string(head) + "</th>";
    result += "</tr></thead><tbody>\n";
    for (int64_t layer = 0; layer < size.layers; ++layer) {
      result += "<tr><th scope=\"row\">" + std::to_string(layer) + "</th>";
      for (int64_t head = 0; head < size.heads; ++head) result += cell(name_of(stack, layer, head));
      result += "</tr>\n";
    }
    result += "</tbody></table></div>";
  }
  return result + "</div>\n";
}

std::string linked(const std::string& name, const std::string& text) {
  return "<a href=\"#" + html::escape(head_anchor(name)) + "\">" + html::escape(text) + "</a>";
}

std::string cell_html(const std::string& name, const std::string& kind, const std::string& style,
                      const std::string& hover, const std::string& text) {
  return "<td" + (kind.empty() ? "" : " class=\"" + kind + "\"") + (style.empty() ? "" : " style=\"" + style + "\"") +
         " title=\"" + html::escape(name + ": " + hover) + "\">" + linked(name, text) + "</td>";
}

}  // namespace

std::optional<HeadPlace> place_of(const std::string& name) {
  auto last = name.rfind('.');
  if (last == std::string::npos || last == 0) return std::nullopt;
  auto before = name.rfind('.', last - 1);
  if (before == std::string::npos || before == 0) return std::nullopt;
  auto number = [&](std::size_t begin, std::size_t end) -> std::optional<int64_t> {
    int64_t value = 0;
    auto [stop, error] = std::from_chars(name.data() + begin, name.data() + end, value);
    constexpr int64_t most = 4096;  // what a page can show; a larger index is not a head of ours
    if (error != std::errc() || stop != name.data() + end || value < 0 || value >= most) return std::nullopt;
    return value;
  };
  auto layer = number(before + 1, last), head = number(last + 1, name.size());
  if (!layer || !head) return std::nullopt;
  return HeadPlace{name.substr(0, before), *layer, *head};
}

void StackSizes::add(const HeadPlace& place) {
  auto& size = sizes[place.stack];
  size.layers = std::max(size.layers, place.layer + 1);
  size.heads = std::max(size.heads, place.head + 1);
}

std::vector<std::string> StackSizes::stacks() const {
  std::vector<std::string> names;
  for (auto& [name, title] : stack_titles) {
    if (sizes.count(name)) names.push_back(name);
  }
  for (auto& [name, size] : sizes) {
    if (stack_title(name).empty()) names.push_back(name);
  }
  return names;
}

std::string head_anchor(const std::string& name) { return "head-" + name; }

std::string sequential_colour(double share) { return hex(between(sequential, share)); }
std::string diverging_colour(double share) { return hex(between(headlab::diverging, share)); }

std::string HeadMap::html(const StackSizes& sizes) const {
  double low = INFINITY, high = -INFINITY;
  for (auto& [name, value] : values) {
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
  if (low > high) return "";
  double reach = std::max(std::abs(low), std::abs(high));
  if (diverging) low = -reach, high = reach;
  auto share = [&](double value) {
    double part = high > low ? (value - low) / (high - low) : 0.5;
    return diverging && high_is_bad ? 1 - part : part;
  };
  auto colour = [&](double value) {
    return diverging ? between(headlab::diverging, share(value)) : between(sequential, share(value));
  };
  // All cells of a map have equally many digits; values that are all small are shown times a power of ten.
  int power = reach > 0 ? static_cast<int>(std::floor(std::log10(reach))) : 0;
  int factor = power < -1 || power > 3 ? power : 0;
  double times = std::pow(10.0, -factor);
  int digits = reach * times >= 100 ? 0 : reach * times >= 10 ? 1 : 2;
  auto short_text = [&](double value) {
    return diverging ? fixed_signed(value * times, digits) : fixed(value * times, digits);
  };
  auto long_text = [&](double value) { return (diverging && value > 0 ? "+" : "") + significant(value, 4); };

  std::string result = "<h3>" + html::escape(title) + "</h3>\n";
  result += grids(sizes, title, [&](const std::string& name) {
    auto found = values.find(name);
    if (gone.count(name)) return cell_html(name, "gone", "", "removed before by " + gone_by, "✕");
    if (found == values.end()) return "<td class=\"none\" title=\"" + html::escape(name) + ": no value\"></td>";
    bool out = crossed.count(name) > 0;
    auto hover = long_text(found->second) + " (" + unit + ")" + (out ? "; removed by " + crossed_by : "");
    return cell_html(name, out ? "out" : "", filled(colour(found->second)), hover, short_text(found->second));
  });
  result += "<p class=\"scale\">";
  constexpr int swatches = 9;
  std::string ramp = "<span class=\"ramp\" aria-hidden=\"true\">";
  for (int i = 0; i < swatches; ++i) {
    auto value = low + (high - low) * i / (swatches - 1);
    ramp += "<i style=\"background-color:" + hex(colour(value)) + "\"></i>";
  }
  ramp += "</span>";
  auto end_text = [&](double value) { return html::escape(factor == 0 ? short_text(value) : long_text(value)); };
  result += end_text(low) + " " + ramp + " " + end_text(high) + "  " + html::escape(unit) +
            (reading.empty() ? "" : "; " + html::escape(reading)) +
            (factor != 0 ? "; cells times 10<sup>" + std::to_string(factor) + "</sup>" : "") +
            (crossed.empty() ? "" : "; crossed out: removed by " + html::escape(crossed_by)) + "</p>\n";
  return result;
}

std::string kept_map(const std::string& title, const std::set<std::string>& removed, const std::string& verb,
                     const StackSizes& sizes) {
  return "<h3>" + html::escape(title) + "</h3>\n" + grids(sizes, title, [&](const std::string& name) {
           bool out = removed.count(name) > 0;
           return cell_html(name, out ? "gone" : "kept", "", out ? verb : "kept", out ? "✕" : "●");
         });
}

}  // namespace headlab
