#pragma once

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace headlab::test {

/// A folder with a small parallel text in files of its own, and specs that train on it in a second or two. The target
/// is the source backwards.
class TinyFiles {
 public:
  TinyFiles() {
    write_split("train", 60);
    write_split("valid", 8);
    write_split("test", 8);
  }

  /// Lines of two to five letters.
  static std::string lines(int count, int first, bool backwards) {
    std::string text;
    for (int i = first; i < first + count; ++i) {
      std::vector<std::string> words;
      for (int w = 0; w < 2 + i % 4; ++w)
        words.push_back(std::string(1, static_cast<char>('a' + (i * 7 + w * w * 3 + w) % 12)));
      if (backwards) words = {words.rbegin(), words.rend()};
      for (std::size_t w = 0; w < words.size(); ++w) text += (w ? " " : "") + words[w];
      text += "\n";
    }
    return text;
  }

  /// A spec that trains on these files; `more` begins with a comma: ", \"precision\": \"float64\"".
  std::string spec(const std::string& stages, const std::string& more = "",
                   const std::string& name = "tiny.json") const {
    return folder_
        .write(name, R"({
  "name": "tiny",
  "seed": 3,
  "task": {
    "type": "translation",
    "data": {"type": "files", "train_source": "train.src", "train_target": "train.tgt", "valid_source": "valid.src",
             "valid_target": "valid.tgt", "test_source": "test.src", "test_target": "test.tgt"},
    "tokenizer": {"type": "word", "vocabulary": 40},
    "max_length": 20
  },
  "model": {
    "type": "encoder_decoder",
    "d_model": 16,
    "embedding": {"max_length": 24},
    "encoder": {"layers": 2, "attention": {"heads": 4}},
    "decoder": {"layers": 2, "attention": {"heads": 4}, "cross_attention": {"heads": 2}}
  },
  "stages": )" + stages + more +
                         "\n}\n")
        .string();
  }

  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  std::filesystem::path operator/(const std::string& name) const { return folder_.path() / name; }
  std::string out() const { return (folder_.path() / "runs").string(); }
  std::filesystem::path run() const { return only_run(out(), "tiny"); }

 private:
  void write_split(const std::string& split, int count) const {
    const int first = split == "train" ? 0 : split == "valid" ? 100 : 200;
    write(split + ".src", lines(count, first, false));
    write(split + ".tgt", lines(count, first, true));
  }
  Folder folder_;
};

/// {"train": {...}} of this many steps with a steady learning rate.
inline std::string train_stage(int steps, const std::string& more = "") {
  return R"({"train": {"steps": )" + std::to_string(steps) +
         R"(, "batch": {"max_tokens": 200}, "log_every": 1, "schedule": {"type": "constant", "peak": 0.003})" + more +
         "}}";
}

}  // namespace headlab::test
