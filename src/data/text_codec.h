#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace headlab {

/// Turns whole texts, line ends included, into ids and back; what a language model reads. Lines end in LF.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// pad, bos and unknown ids give no text.
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  virtual int64_t size() const = 0;
  virtual int64_t pad_id() const = 0;
  virtual int64_t bos_id() const = 0;
  /// Where generation ends: the end of a line for pieces; an id that no text has for characters and bytes.
  virtual int64_t eos_id() const = 0;
  virtual int64_t unk_id() const = 0;
  /// "bpe 1,000", "65 characters", "bytes".
  virtual std::string summary() const = 0;
  /// What from_files needs to make the same codec again, by file name.
  virtual std::map<std::string, std::string> files() const = 0;
};

/// Pieces of a tokenizer, line by line; each line's end is eos. White space is what the tokenizer makes of it: runs
/// become one space and those at the ends of a line go, so that decode(encode(text)) is the text as its words and
/// lines.
std::shared_ptr<const TextCodec> pieces_codec(Tokenizer tokenizer, const std::string& type);

/// Each character (Unicode code point) an id, white space and line ends included, nothing normalised:
/// decode(encode(text)) is the text for known characters. `text`: whose characters are known; others become unk, which
/// decodes to U+2047. Ids: pad 0, unk 1, bos 2, eos 3, then the characters by code point.
std::shared_ptr<const TextCodec> characters_codec(std::string_view text);

/// Each byte of the UTF-8 text an id, 4 + its value; 260 ids whatever the text, and none unknown.
std::shared_ptr<const TextCodec> bytes_codec();

/// The codec of `units` ("pieces", "characters", "bytes") that these files hold; nullptr where they hold none.
std::shared_ptr<const TextCodec> codec_from_files(const std::string& units, const std::string& type,
                                                  const std::map<std::string, std::string>& files);

}  // namespace headlab
