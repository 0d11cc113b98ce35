#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace headlab {

class Fields;

/// Rules between the fields of an options struct that are broken; each is reported at the place of the field it names.
/// `field` is relative to the struct: "heads", "encoder.width".
struct Problems {
  struct Problem {
    std::string field, message;
  };
  std::vector<Problem> found;
  void add(std::string field, std::string message) { found.push_back({std::move(field), std::move(message)}); }
};

/// An options struct describes each of its fields once; reading, defaults, ranges, `--set`, the resolved dump, the JSON
/// Schema and the catalogue all come from that description.
struct Options {
  virtual ~Options() = default;
  virtual void describe(Fields& fields) = 0;
  virtual void rules(Problems&) const {}
  virtual std::shared_ptr<Options> copy() const = 0;
};

/// Gives an options struct its copy(): `struct RopeOptions : Described<RopeOptions> { ... };`
template <class Derived>
struct Described : Options {
  std::shared_ptr<Options> copy() const override {
    return std::make_shared<Derived>(static_cast<const Derived&>(*this));
  }
};

/// Another entry that one can't stand beside in one attention, and why not.
struct Clash {
  std::string with;  // "position.rope"; "position.*": any of that slot
  std::string why;
};

/// What a person reads about one entry of a slot, and its options with their defaults.
struct EntryInfo {
  std::string name;     // as specs write it: "hard_concrete"
  std::string summary;  // one line
  std::string paper;    // arXiv number, or empty
  std::function<std::shared_ptr<Options>()> options;
  std::vector<std::string> notes = {};  // where it can't stand, and what a generic claim leaves out for it, and why
  std::vector<Clash> clashes = {};
};

/// The entries of one slot. Names are unique; the order is the order of `headlab list`.
struct Catalogue {
  std::string slot;     // "gate"
  std::string summary;  // what the slot does
  std::vector<EntryInfo> entries;
  const EntryInfo* find(const std::string& name) const;  // nullptr where there is none
  std::vector<std::string> names() const;
};

/// One entry chosen from a catalogue, with its options. In a spec: "rope", {"type": "rope", "base": 500}, and for a
/// catalogue read as keyed (stages) {"prune": {"fraction": 0.5}}.
class Choice {
 public:
  using Source = const Catalogue& (*)();           // a function, so that no order of static objects matters
  Choice(Source source, const std::string& type);  // throws UsageError for an unknown type
  Choice(const Choice& other);                     // copies the options
  Choice& operator=(const Choice& other);
  void choose(const std::string& type);  // the entry's default options
  const std::string& type() const { return type_; }
  const Catalogue& catalogue() const { return source_(); }
  Source source() const { return source_; }
  Options& options() { return *options_; }
  const Options& options() const { return *options_; }
  template <class T>
  const T& as() const {
    return dynamic_cast<const T&>(*options_);
  }
  template <class T>
  T& as() {
    return dynamic_cast<T&>(*options_);
  }

 private:
  Source source_;
  std::string type_;
  std::shared_ptr<Options> options_;
};

/// A list of choices from one catalogue: gates in series, the stages of a run.
struct Choices {
  Choice::Source source;
  bool keyed = false;  // {"prune": {...}} instead of {"type": "prune", ...}
  std::vector<Choice> items;
};

/// A list of options structs of one kind, its type erased for the reader.
struct OptionsList {
  std::function<std::size_t()> size;
  std::function<Options&(std::size_t)> at;
  std::function<Options&()> append;
  std::function<void()> clear;
  bool laid_over = false;  // an element starts with values: what is written is laid over them, the rest stays
};

/// One field: where its value lives, and what a person must know about it.
class Field {
 public:
  using Value = std::variant<bool*, int64_t*, double*, std::string*, std::optional<bool>*, std::optional<int64_t>*,
                             std::optional<double>*, std::optional<std::string>*, std::vector<int64_t>*,
                             std::vector<double>*, std::vector<std::string>*, Options*, Choice*, Choices*, OptionsList,
                             nlohmann::ordered_json*>;  // the last: any JSON value, kept as it is

  Field(std::string name, Value value, std::string help)
      : name(std::move(name)), help(std::move(help)), value(std::move(value)) {}

  // Ranges; for lists they hold for each element.
  Field& at_least(double v) {
    minimum = v;
    return *this;
  }
  Field& at_most(double v) {
    maximum = v;
    return *this;
  }
  Field& above(double v) {
    exclusive_minimum = v;
    return *this;
  }
  Field& below(double v) {
    exclusive_maximum = v;
    return *this;
  }
  Field& one_of(std::vector<std::string> v) {
    choices = std::move(v);
    return *this;
  }
  Field& unit(std::string v) {
    unit_ = std::move(v);
    return *this;
  }  // "tokens", "steps", "seconds"
  Field& means(std::string v) {
    sentinel = std::move(v);
    return *this;
  }  // "0: no limit"; "absent: width / heads"
  Field& required() {
    is_required = true;
    return *this;
  }
  Field& or_number() {
    number_too = true;
    return *this;
  }  // a string that may be written as a number
  Field& file() {
    is_file = true;
    return *this;
  }  // a file that must be there before a run
  Field& metric() {
    is_metric = true;
    return *this;
  }  // names a metric of the task, or several
  Field& task() {
    is_task = true;
    return *this;
  }  // names one of the spec's further tasks
  Field& role() {
    is_role = true;
    return *this;
  }  // names roles that the tasks tell; "" is none

  std::string name, help, unit_, sentinel;
  Value value;
  std::optional<double> minimum, maximum, exclusive_minimum, exclusive_maximum;
  std::vector<std::string> choices;
  bool is_required = false, number_too = false, is_file = false, is_metric = false, is_task = false, is_role = false;
};

/// Collects the fields of one options instance. Names are unique within a struct.
class Fields {
 public:
  template <class T>
  Field& add(const std::string& name, T& value, const std::string& help) {
    if constexpr (std::is_base_of_v<Options, T>) {
      return push(Field(name, static_cast<Options*>(&value), help));
    } else {
      return push(Field(name, Field::Value(&value), help));
    }
  }
  template <class T>
    requires std::is_base_of_v<Options, T>
  Field& add(const std::string& name, std::vector<T>& list, const std::string& help) {
    OptionsList erased{[&list] { return list.size(); }, [&list](std::size_t i) -> Options& { return list[i]; },
                       [&list]() -> Options& { return list.emplace_back(); }, [&list] { list.clear(); },
                       /*laid_over=*/false};
    return push(Field(name, Field::Value(std::move(erased)), help));
  }
  /// The same, for elements that start as `start()`, called when one is read: the fields before this one have their
  /// values.
  template <class T>
    requires std::is_base_of_v<Options, T>
  Field& add(const std::string& name, std::vector<T>& list, std::function<T()> start, const std::string& help) {
    OptionsList erased{[&list] { return list.size(); }, [&list](std::size_t i) -> Options& { return list[i]; },
                       [&list, start = std::move(start)]() -> Options& { return list.emplace_back(start()); },
                       [&list] { list.clear(); }, /*laid_over=*/true};
    return push(Field(name, Field::Value(std::move(erased)), help));
  }
  const std::vector<Field>& all() const { return fields_; }

 private:
  Field& push(Field field);  // the reference lives until the next add; std::logic_error for a name that is taken
  std::vector<Field> fields_;
};

}  // namespace headlab
