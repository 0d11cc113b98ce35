#pragma once

#include <string>
#include <variant>

#include "modules/base/fields.h"

namespace headlab {

/// One visitor from many lambdas, for std::visit over Field::Value.
template <class... Visits>
struct Visitor : Visits... {
  using Visits::operator()...;
};
template <class... Visits>
Visitor(Visits...) -> Visitor<Visits...>;

/// A number as a person writes it: 8, 0.1, 1e+20.
std::string number_text(double value);

/// What a field takes: "a number in [0, 1)", "an integer of at least 1 (steps)", `one of "adam", "sgd"`,
/// "a list of integers of at least 1", "the name of a position, or an object with its \"type\"".
std::string expected(const Field& field);

/// What one element of a list field takes; for other fields the same as expected().
std::string expected_element(const Field& field);

/// "a stage", "an attention".
std::string with_article(const std::string& noun);

/// The range of a field after its type: " in [0, 1)", " of at least 1", " above 0"; empty where it has none.
std::string range_text(const Field& field);

}  // namespace headlab
