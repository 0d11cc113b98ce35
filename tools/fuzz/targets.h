#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "modules/base/random.h"

/// What is fuzzed: readers of bytes that others wrote. Each takes any bytes at all; what it must do with them is
/// written as promises, and a promise that is broken ends the process with the reason on standard error, as a sanitizer
/// would. Driven by libFuzzer or by a loop of our own (tools/fuzz/run), and by a short test (tests/fuzz). No LibTorch.
namespace headlab::fuzz {

struct Target {
  const char* name;
  const char* summary;
  int (*one)(const uint8_t* data, std::size_t size);                // 0; does not return where a promise is broken
  std::vector<std::string> (*seeds)();                              // sound inputs to begin with
  std::string (*mutate)(const std::string& input, Random& random);  // one edit that knows the input's grammar
};

const std::vector<Target>& targets();
const Target& target(const std::string& name);  // std::out_of_range for a name that is none

/// Promises: a spec, then lines "--set key=value". Parsing, overrides, sweep, reading, rules and claims throw nothing
/// but UsageError, whose text is short lines of UTF-8 that begin with a place; the parser takes what nlohmann/json
/// takes (but for depth and range) and reads the same values; the dump of what was accepted reads back to the same
/// dump.
int fuzz_spec(const uint8_t* data, std::size_t size);
std::vector<std::string> spec_seeds();
std::string mutate_spec(const std::string& input, Random& random);

/// Promises: an expression of a claim, or a key path. Both throw nothing but UsageError; what is sound evaluates to a
/// number or an Error; a path reads back from its text.
int fuzz_expression(const uint8_t* data, std::size_t size);
std::vector<std::string> expression_seeds();
std::string mutate_expression(const std::string& input, Random& random);

/// Promises: the bytes of a text file, or of two after one another (cut at the first 0x1E). Lines and counts are those
/// of a plain reference; a parallel text keeps usable pairs alone, counts all, and throws nothing but FileError.
int fuzz_text(const uint8_t* data, std::size_t size);
std::vector<std::string> text_seeds();
std::string mutate_text(const std::string& input, Random& random);

/// Promises: the bytes of a file of annotated text, read as CoNLL-U, columns, JSON lines, TSV and plain text. Nothing
/// but FileError; words have their tags, all text is UTF-8 and stands where it says, labels read back, every line is
/// counted.
int fuzz_annotation(const uint8_t* data, std::size_t size);
std::vector<std::string> annotation_seeds();
std::string mutate_annotation(const std::string& input, Random& random);

/// Promises: the bytes of a safetensors file, or (where they begin with "{") of a state.json. Nothing but FileError;
/// what is accepted tiles its data exactly.
int fuzz_checkpoint(const uint8_t* data, std::size_t size);
std::vector<std::string> checkpoint_seeds();
std::string mutate_checkpoint(const std::string& input, Random& random);

/// One edit of a JSON text that knows what JSON is made of; `words` are keys and values worth trying, as JSON.
std::string mutate_json(const std::string& text, const std::vector<std::string>& words, Random& random);

/// One edit of any bytes: removed, inserted from `alphabet`, replaced, repeated.
std::string mutate_bytes(const std::string& bytes, const std::string& alphabet, Random& random);

/// The characters of a literal, NULs included.
template <std::size_t N>
std::string characters(const char (&text)[N]) {
  return {text, N - 1};
}

/// A safetensors file of this header and data, with the length that the header has.
std::string safetensors_bytes(const std::string& header, const std::string& data);

/// Ends the process: "<target>: <promise> is broken: <what>".
[[noreturn]] void broken(const char* target, const std::string& what);

/// Calls `read`, which may throw nothing but FileError, with a message for a person.
void may_refuse(const char* target, const std::function<void()>& read);

/// Breaks where a message is no message for a person: not UTF-8, a control character, a line of more than 10,000 bytes.
void check_message(const char* target, const std::string& message);

}  // namespace headlab::fuzz
