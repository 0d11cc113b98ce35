#include "src/data/labelled/labels.h"

#include <algorithm>

#include "modules/base/error.h"
#include "modules/base/nearest.h"

namespace headlab {

Labels::Labels(const std::set<std::string>& names) : names_(names.begin(), names.end()) {
  for (const auto& name : names_)
    if (name.find('\n') != std::string::npos) throw Error("expected labels of one line, got " + in_quotes(name));
}

Labels Labels::from_file(const std::string& text) {
  Labels labels;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find('\n', start), text.size());
    labels.names_.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return labels;
}

int64_t Labels::id(const std::string& name, const std::string& place) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) throw Error(place + ": " + unknown_name("label", name, names_));
  return found - names_.begin();
}

std::string Labels::file() const {
  std::string text;
  for (const auto& name : names_) text += name + "\n";
  return text;
}

}  // namespace headlab
