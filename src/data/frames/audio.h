#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// A recording of one channel. Samples of whole numbers are divided by the largest of their kind, so that they lie in
/// [-1, 1).
struct Audio {
  std::vector<float> samples;
  int64_t rate = 0;  // samples a second
};

/// Reads what libsndfile reads (WAV, FLAC, Ogg, MP3 and others, told by their content); several channels become their
/// mean. Throws FileError, with the way out, for a file that is missing, is no recording, was cut off (a WAV file's
/// header says how long it is), is empty, or holds a sample that is no finite number.
Audio read_audio(const std::string& path);

}  // namespace headlab
