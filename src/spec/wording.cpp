#include "src/spec/wording.h"

#include <charconv>
#include <cmath>

#include "modules/base/nearest.h"

namespace headlab {

namespace {

struct Words {
  std::string one, many;  // many: of a list
  bool nullable = false;
};

Words words(const Field& field) {
  const std::string text = field.number_too ? "a string or a number" : "a string";
  const std::string text_or_null = field.number_too ? "a string, a number" : "a string";
  return std::visit(
      Visitor{
          [](bool*) { return Words{"true or false", ""}; },
          [](int64_t*) { return Words{"an integer", ""}; },
          [](double*) { return Words{"a number", ""}; },
          [&](std::string*) { return Words{text, ""}; },
          [](std::optional<bool>*) { return Words{"true, false", "", true}; },
          [](std::optional<int64_t>*) { return Words{"an integer", "", true}; },
          [](std::optional<double>*) { return Words{"a number", "", true}; },
          [&](std::optional<std::string>*) { return Words{text_or_null, "", true}; },
          [](std::vector<int64_t>*) { return Words{"an integer", "a list of integers"}; },
          [](std::vector<double>*) { return Words{"a number", "a list of numbers"}; },
          [](std::vector<std::string>*) { return Words{"a string", "a list of strings"}; },
          [](Options*) { return Words{"an object", ""}; },
          [](Choice* choice) {
            return Words{"the name of " + with_article(choice->catalogue().slot) + ", or an object with its \"type\"",
                         ""};
          },
          [](Choices* choices) {
            std::string one = with_article(choices->source().slot);
            return Words{choices->keyed ? one + ": {\"name\": {its options}}, or the name alone"
                                        : "the name of " + one + ", or an object with its \"type\"",
                         "a list, each item " + one};
          },
          [](const OptionsList&) { return Words{"an object", "a list of objects"}; },
          [](nlohmann::ordered_json*) { return Words{"any value", ""}; },
      },
      field.value);
}

/// The type of one value with its range, choices and unit.
std::string limited(const Field& field, const std::string& type) {
  std::string text = type + range_text(field);
  if (!field.choices.empty()) {
    text = "one of ";
    for (std::size_t i = 0; i < field.choices.size(); ++i) text += (i ? ", " : "") + in_quotes(field.choices[i]);
  }
  return field.unit_.empty() ? text : text + " (" + field.unit_ + ")";
}

}  // namespace

std::string number_text(double value) {
  if (std::floor(value) == value && std::abs(value) < 1e15) return std::to_string(static_cast<int64_t>(value));
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "?";
}

std::string with_article(const std::string& noun) {
  bool vowel = !noun.empty() && std::string("aeiou").find(noun[0]) != std::string::npos;
  return (vowel ? "an " : "a ") + noun;
}

std::string range_text(const Field& field) {
  bool below_open = field.exclusive_minimum.has_value(), above_open = field.exclusive_maximum.has_value();
  auto low = below_open ? field.exclusive_minimum : field.minimum;
  auto high = above_open ? field.exclusive_maximum : field.maximum;
  if (low && high) {
    return std::string(" in ") + (below_open ? "(" : "[") + number_text(*low) + ", " + number_text(*high) +
           (above_open ? ")" : "]");
  }
  if (low) return (below_open ? " above " : " of at least ") + number_text(*low);
  if (high) return (above_open ? " below " : " of at most ") + number_text(*high);
  return "";
}

std::string expected_element(const Field& field) {
  Words word = words(field);
  std::string text = limited(field, word.one);
  return word.nullable ? text + " or null" : text;
}

std::string expected(const Field& field) {
  Words word = words(field);
  if (word.many.empty()) return expected_element(field);
  if (!field.choices.empty()) return "a list, each item " + limited(field, "");
  return limited(field, word.many);
}

}  // namespace headlab
