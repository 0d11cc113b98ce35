#include "src/data/frames/audio.h"

#include <sndfile.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "modules/base/error.h"

namespace headlab {
namespace {

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

/// libsndfile reads a WAV file that was cut off as if it were a shorter one. What writes to a pipe can't know the
/// length, and leaves 0 or about the largest number there.
void check_wav_length(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  unsigned char head[12];
  if (!file.read(reinterpret_cast<char*>(head), sizeof head)) return;
  if (std::memcmp(head, "RIFF", 4) != 0 || std::memcmp(head + 8, "WAVE", 4) != 0) return;
  const uint64_t said = 8 + (head[4] | uint64_t{head[5]} << 8 | uint64_t{head[6]} << 16 | uint64_t{head[7]} << 24);
  const uint64_t there = std::filesystem::file_size(path);
  if (said > 8 && said < 0x7fffff00 && there < said)
    throw FileError(path + ": expected " + std::to_string(said) + " bytes, as its header says, got " +
                    std::to_string(there) + ": it was cut off; copy it again");
}

}  // namespace

Audio read_audio(const std::string& path) {
  if (std::error_code none; !std::filesystem::is_regular_file(path, none))
    throw FileError(path + ": cannot be read: no such file");
  check_wav_length(path);
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, CloseSound> file(sf_open(path.c_str(), SFM_READ, &info));
  if (!file)
    throw FileError(path + ": expected a recording (WAV, FLAC, Ogg ...), got what libsndfile does not read (" +
                    sf_strerror(nullptr) + "); convert it to WAV");
  Audio audio;
  audio.rate = info.samplerate;
  const auto channels = static_cast<std::size_t>(info.channels);
  constexpr sf_count_t at_once = 4096;  // the header's number of samples is not trusted with memory
  std::vector<float> block(channels * at_once);
  while (const auto read = sf_readf_float(file.get(), block.data(), at_once))
    for (std::size_t i = 0; i < static_cast<std::size_t>(read); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += block[i * channels + c];
      audio.samples.push_back(static_cast<float>(sum / static_cast<double>(channels)));
      if (!std::isfinite(audio.samples.back()))
        throw FileError(path + ": expected finite numbers, got another as sample " +
                        std::to_string(audio.samples.size() - 1) + "; record or convert it again");
    }
  const auto count = static_cast<sf_count_t>(audio.samples.size());
  if (sf_error(file.get()) != SF_ERR_NO_ERROR || (info.seekable && count < info.frames))
    throw FileError(path + ": expected " + std::to_string(info.frames) + " samples, got " + std::to_string(count) +
                    ": it is damaged or was cut off (" + sf_strerror(file.get()) + "); copy it again");
  if (count == 0) throw FileError(path + ": expected a recording, got one without samples; leave it out");
  return audio;
}

}  // namespace headlab
