#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "modules/base/fields.h"
#include "modules/base/random.h"
#include "modules/tensor/registry.h"

/// Exercises that a program writes: small data of a known rule, the same on every platform.
namespace headlab {

/// The symbols of an exercise; a symbol's place is its id. The first four are those of every tokenizer of ours.
class Symbols {
 public:
  static constexpr int32_t pad = 0, unk = 1, bos = 2, eos = 3;
  Symbols() : names_{"<pad>", "<unk>", "<bos>", "<eos>"} {}
  /// Names must differ.
  int32_t add(const std::string& name);
  /// prefix0, prefix1, ...: returns the first.
  int32_t add(const std::string& prefix, int64_t count);
  /// Returns the first.
  int32_t append(const std::vector<std::string>& names);
  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  const std::string& name(int32_t id) const { return names_.at(static_cast<std::size_t>(id)); }
  int32_t id(const std::string& name) const;  // unk for an unknown name

 private:
  std::vector<std::string> names_;
};

/// What an exercise's examples are.
enum class Form {
  sequence,  // the model reads symbols and says the one that follows, where it is asked
  aligned,   // at each symbol that is read, something is to be said of it
  pair,      // a source and its target
  label      // a text and its class
};

/// One example. `answer` is as long as `read`: what is to be said at each symbol read, or `none`.
///   sequence  read begins with bos; answer[t] is the symbol that follows read[t], where it is asked
///   aligned   answer[t] may be any symbol
///   pair      source and read (the target), both without bos and eos; answer is empty
///   label     read, and one answer: the class
struct GeneratedExample {
  static constexpr int32_t none = -1;
  std::vector<int32_t> source, read, answer;
  bool operator==(const GeneratedExample&) const = default;
};

/// Writes the example of a sequence: symbols one after another, some of them asked.
class SequenceWriter {
 public:
  SequenceWriter() : last_(Symbols::bos) {}
  /// The symbol follows, and is not asked.
  void give(int32_t symbol) { put(symbol, GeneratedExample::none); }
  /// The symbol follows, and the model must say so.
  void ask(int32_t symbol) { put(symbol, symbol); }
  GeneratedExample done() { return std::move(example_); }

 private:
  void put(int32_t symbol, int32_t answer) {
    example_.read.push_back(last_);
    example_.answer.push_back(answer);
    last_ = symbol;
  }
  int32_t last_;
  GeneratedExample example_;
};

/// How large an example is (what is counted, each exercise says): uniform between two bounds, for the test part between
/// two others if they are given.
struct SizeRange : Described<SizeRange> {
  int64_t min, max;
  std::optional<int64_t> test_min, test_max;
  SizeRange(int64_t min = 1, int64_t max = 1) : min(min), max(max) {}
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  int64_t draw(Random& random, bool test) const;
  int64_t largest() const { return std::max(max, test_max.value_or(max)); }
  int64_t smallest() const { return std::min(min, test_min.value_or(min)); }
};

/// Writes examples of one exercise.
class Generator {
 public:
  virtual ~Generator() = default;
  virtual const Symbols& symbols() const = 0;
  virtual Form form() const = 0;
  /// The classes of Form::label, by number.
  virtual std::vector<std::string> classes() const { return {}; }
  /// `test`: an example of the test part, which may be larger.
  virtual GeneratedExample draw(Random& random, bool test) const = 0;
};

/// A registered exercise. Its options know its form before anything is drawn.
struct GeneratorOptions {
  virtual ~GeneratorOptions() = default;
  virtual Form form() const = 0;
};

using Generators = Registry<Generator>;
const Generators& generators();
const Catalogue& generator_catalogue();

/// The options of an exercise: `struct CopyOptions : ExerciseOptions<CopyOptions, Form::pair> { ... };`
template <class Derived, Form its_form>
struct ExerciseOptions : Described<Derived>, GeneratorOptions {
  Form form() const override { return its_form; }
};

/// A generator that keeps its options and fills its symbols when it is made.
template <class OptionsType>
class Exercise : public Generator {
 public:
  explicit Exercise(const OptionsType& options) : options_(options) {}
  const Symbols& symbols() const override { return symbols_; }
  Form form() const override { return options_.form(); }

 protected:
  OptionsType options_;
  Symbols symbols_;
};

/// A uniform number in [0, n) as int32.
inline int32_t uniform_below(Random& random, int64_t n) {
  return static_cast<int32_t>(random.below(static_cast<uint64_t>(n)));
}

}  // namespace headlab
