#include "src/data/generated/generator.h"

#include <algorithm>
#include <stdexcept>

namespace headlab {

int32_t Symbols::add(const std::string& name) {
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    throw std::logic_error("two symbols are named " + name);
  names_.push_back(name);
  return static_cast<int32_t>(names_.size()) - 1;
}

int32_t Symbols::add(const std::string& prefix, int64_t count) {
  const auto first = static_cast<int32_t>(names_.size());
  for (int64_t i = 0; i < count; ++i) names_.push_back(prefix + std::to_string(i));
  return first;
}

int32_t Symbols::append(const std::vector<std::string>& names) {
  const auto first = static_cast<int32_t>(names_.size());
  names_.insert(names_.end(), names.begin(), names.end());
  return first;
}

int32_t Symbols::id(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? unk : static_cast<int32_t>(found - names_.begin());
}

void SizeRange::describe(Fields& fields) {
  fields.add("min", min, "the smallest").at_least(1);
  fields.add("max", max, "the largest").at_least(1);
  fields.add("test_min", test_min, "the smallest of the test part").at_least(1).means("absent: min");
  fields.add("test_max", test_max, "the largest of the test part").at_least(1).means("absent: max");
}

void SizeRange::rules(Problems& problems) const {
  if (min > max) problems.add("min", "expected at most max (" + std::to_string(max) + "), got " + std::to_string(min));
  const auto low = test_min.value_or(min), high = test_max.value_or(max);
  if (low > high)
    problems.add(test_min ? "test_min" : "test_max",
                 "expected test sizes from " + std::to_string(low) + " up, got at most " + std::to_string(high));
}

int64_t SizeRange::draw(Random& random, bool test) const {
  const auto low = test ? test_min.value_or(min) : min, high = test ? test_max.value_or(max) : max;
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

}  // namespace headlab
