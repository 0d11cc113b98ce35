#include "tools/fuzz/targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "modules/base/error.h"
#include "src/spec/document.h"

namespace headlab::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"spec", "specs, --set arguments and sweeps", fuzz_spec, spec_seeds, mutate_spec},
      {"expression", "claims' expressions and key paths", fuzz_expression, expression_seeds, mutate_expression},
      {"text", "text files and parallel text", fuzz_text, text_seeds, mutate_text},
      {"annotation", "CoNLL-U, columns, JSON lines, TSV and plain text", fuzz_annotation, annotation_seeds,
       mutate_annotation},
      {"checkpoint", "safetensors files and state.json", fuzz_checkpoint, checkpoint_seeds, mutate_checkpoint}};
  return all;
}

const Target& target(const std::string& name) {
  for (const auto& each : targets())
    if (name == each.name) return each;
  throw std::out_of_range("no fuzz target " + name);
}

void broken(const char* target, const std::string& what) {
  std::fprintf(stderr, "%s: a promise is broken: %s\n", target, what.c_str());
  std::abort();
}

void may_refuse(const char* target, const std::function<void()>& read) {
  try {
    read();
  } catch (const FileError& error) {
    check_message(target, error.what());
  } catch (const std::exception& error) {
    broken(target, std::string("another exception than of a file: ") + error.what());
  }
}

void check_message(const char* target, const std::string& message) {
  constexpr std::size_t longest = 10'000;
  if (message.empty()) broken(target, "an empty message");
  if (!is_utf8(message)) broken(target, "a message is not UTF-8: " + message);
  std::size_t line = 0;
  for (const char c : message) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F)
      broken(target, "a message has a control character: " + message);
    line = c == '\n' ? 0 : line + 1;
    if (line > longest) broken(target, "a message has an endless line: " + message.substr(0, 300));
  }
}

}  // namespace headlab::fuzz
