#include "modules/base/fields.h"

#include <stdexcept>

#include "modules/base/error.h"
#include "modules/base/nearest.h"

namespace headlab {

const EntryInfo* Catalogue::find(const std::string& name) const {
  for (const EntryInfo& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string> Catalogue::names() const {
  std::vector<std::string> names;
  for (const EntryInfo& entry : entries) names.push_back(entry.name);
  return names;
}

Choice::Choice(Source source, const std::string& type) : source_(source) { choose(type); }

Choice::Choice(const Choice& other) : source_(other.source_), type_(other.type_), options_(other.options_->copy()) {}

Choice& Choice::operator=(const Choice& other) {
  auto options = other.options_->copy();
  source_ = other.source_;
  type_ = other.type_;
  options_ = std::move(options);
  return *this;
}

void Choice::choose(const std::string& type) {
  const Catalogue& catalogue = source_();
  const EntryInfo* entry = catalogue.find(type);
  if (!entry) throw UsageError(unknown_name(catalogue.slot, type, catalogue.names()));
  options_ = entry->options();
  type_ = type;
}

Field& Fields::push(Field field) {
  for (const Field& known : fields_) {
    if (known.name == field.name) throw std::logic_error("two fields of one struct are named " + field.name);
  }
  return fields_.emplace_back(std::move(field));
}

}  // namespace headlab
