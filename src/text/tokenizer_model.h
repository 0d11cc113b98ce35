#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// What stands behind a Tokenizer: one way of cutting text into pieces. See Tokenizer for what each function does.
class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;
  /// "sentencepiece", "wordpiece", "byte_bpe"
  virtual std::string kind() const = 0;
  virtual const std::string& serialized() const = 0;
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// Every id is one of [0, size()).
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  virtual std::vector<std::string> pieces(std::string_view text) const = 0;
  virtual std::string piece(int64_t id) const = 0;
  virtual int64_t id(std::string_view piece) const = 0;

  int64_t size() const { return size_; }
  int64_t pad() const { return pad_; }
  int64_t unk() const { return unk_; }
  int64_t bos() const { return bos_; }
  int64_t eos() const { return eos_; }

 protected:
  int64_t size_ = 0, pad_ = 0, unk_ = 0, bos_ = 0, eos_ = 0;
};

}  // namespace headlab
