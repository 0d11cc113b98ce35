#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/data/generated/generator.h"

namespace headlab {

struct GeneratedOptions : Described<GeneratedOptions> {
  Choice exercise{generator_catalogue, "copy"};
  int64_t train = 20000, valid = 500, test = 500, seed = 1;
  void describe(Fields& fields) override;
};

struct GeneratedData {
  Symbols symbols;
  Form form = Form::sequence;
  std::vector<std::string> classes;                            // of Form::label
  std::map<std::string, std::vector<GeneratedExample>> parts;  // train, valid, test
};

/// Draws the examples. The same options give the same examples on every platform. No example of one part stands in
/// another (pairs: no source), and none stands twice in valid or test; train may repeat itself, as small exercises
/// must. Valid and test do not depend on the number of training examples, and a smaller train part is the beginning of
/// a larger one. Throws UsageError where the exercise has not enough different examples.
GeneratedData generate(const GeneratedOptions& options);

/// Writes train.jsonl, valid.jsonl, test.jsonl and data.json into `directory` (made where it is missing), each
/// atomically. A line is {"read": [symbols], "answer": [symbols or null]}, {"source": [...], "target": [...]} or
/// {"read": [...], "label": "..."}. Throws FileError.
void write_generated(const GeneratedOptions& options, const std::string& directory);

}  // namespace headlab
