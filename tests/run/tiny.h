#pragma once

#include <string>

namespace headlab::test {

/// A spec that runs in a second or two; `stages` is the JSON list of its stages.
inline std::string tiny_spec(const std::string& stages, const std::string& more = "") {
  return R"({
  "name": "tiny",
  "question": "does it run?",
  "seed": 3,
  "task": {
    "type": "translation",
    "data": {"type": "grammar", "train": 300, "valid": 20, "test": 20},
    "tokenizer": {"type": "bpe", "vocabulary": 300}
  },
  "model": {
    "type": "encoder_decoder",
    "d_model": 16,
    "encoder": {"layers": 1, "attention": {"heads": 4}},
    "decoder": {"layers": 1, "attention": {"heads": 4}, "cross_attention": {"heads": 2}}
  },
  "stages": )" +
         stages + more + "\n}\n";
}

}  // namespace headlab::test
