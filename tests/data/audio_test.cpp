#include "src/data/frames/audio.h"

#include <bit>
#include <limits>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"
#include "tests/support/wav.h"

using namespace headlab;
using test::Wav;

namespace {

using Samples = std::vector<float>;

struct SoundFile {
  explicit SoundFile(const std::string& bytes, const std::string& name = "x.wav") : path((scratch / name).string()) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  Scratch scratch;
  std::string path;
};

}  // namespace

TEST_CASE("samples of 8, 16 and 24 bits are divided by the largest of their kind", "[audio][paper-23]") {
  const auto two = read_audio(SoundFile(Wav{.samples = {0, 16384, -32768, 32767, -1}}.bytes()).path);
  CHECK(two.rate == 8000);
  CHECK(two.samples == Samples{0, 0.5F, -1, 32767.0F / 32768, -1.0F / 32768});
  const auto one = read_audio(SoundFile(Wav{.samples = {128, 192, 0, 255}, .bits = 8, .rate = 11025}.bytes()).path);
  CHECK(one.rate == 11025);
  CHECK(one.samples == Samples{0, 0.5F, -1, 127.0F / 128});
  const auto three = read_audio(SoundFile(Wav{.samples = {1 << 22, -(1 << 23), 1}, .bits = 24}.bytes()).path);
  CHECK(three.samples == Samples{0.5F, -1, 1.0F / (1 << 23)});
}

TEST_CASE("several channels become their mean", "[audio][paper-23]") {
  const auto stereo =
      read_audio(SoundFile(Wav{.samples = {16384, 0, -8192, 8192, 100, 300}, .channels = 2}.bytes()).path);
  CHECK(stereo.samples == Samples{0.25F, 0, 200.0F / 32768});
  Wav many{.channels = 3};
  for (int64_t i = 0; i < 3 * 10000; ++i) many.samples.push_back(i % 3 == 2 ? 3 * (i / 3) : 0);
  const auto mean = read_audio(SoundFile(many.bytes()).path);
  REQUIRE(mean.samples.size() == 10000);
  for (std::size_t i = 0; i < 10000; ++i) CHECK(mean.samples[i] == Approx(static_cast<double>(i) / 32768));
}

TEST_CASE("a file that is no whole recording is refused with its name and a way out", "[audio][paper-23]") {
  const auto whole = Wav{.samples = std::vector<int64_t>(1000, 7)}.bytes();
  const auto refused = [](const SoundFile& file) -> std::string {
    try {
      read_audio(file.path);
    } catch (const FileError& error) {
      REQUIRE(std::string(error.what()).rfind(file.path + ": ", 0) == 0);
      return std::string(error.what()).substr(file.path.size() + 2);
    }
    return "read";
  };
  CHECK(refused(SoundFile(whole)) == "read");
  CHECK(refused(SoundFile(whole.substr(0, 1044))) ==
        "expected 2044 bytes, as its header says, got 1044: it was cut off; copy it again");
  CHECK_THAT(refused(SoundFile(whole.substr(0, 20))), ContainsSubstring("it was cut off"));
  CHECK_THAT(refused(SoundFile("no sound at all\n")),
             ContainsSubstring("expected a recording (WAV, FLAC, Ogg ...), got what"));
  CHECK_THAT(refused(SoundFile("")), ContainsSubstring("expected a recording (WAV, FLAC, Ogg ...), got what"));
  CHECK(refused(SoundFile(Wav{}.bytes())) == "expected a recording, got one without samples; leave it out");
  const int64_t half = std::bit_cast<uint32_t>(0.5F),
                nan = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
  CHECK(read_audio(SoundFile(Wav{.samples = {half}, .bits = 32, .format = 3}.bytes()).path).samples == Samples{0.5F});
  CHECK(refused(SoundFile(Wav{.samples = {half, nan}, .bits = 32, .format = 3}.bytes())) ==
        "expected finite numbers, got another as sample 1; record or convert it again");
  CHECK_THROWS_WITH(read_audio("/nowhere/x.wav"), "/nowhere/x.wav: cannot be read: no such file");
  CHECK_THROWS_WITH(read_audio("/"), "/: cannot be read: no such file");
  // What writes to a pipe does not know the length.
  auto piped = whole;
  for (const std::size_t at : {4, 40})
    for (std::size_t i = 0; i < 4; ++i) piped[at + i] = '\xff';
  CHECK(read_audio(SoundFile(piped).path).samples.size() == 1000);
}

TEST_CASE("a damaged recording is read or refused, whatever its bytes", "[audio][paper-23]") {
  const Scratch scratch;
  const auto path = (scratch / "x.wav").string();
  const auto whole = Wav{.samples = std::vector<int64_t>(60, 1000), .channels = 2}.bytes();
  Random random(1);
  int64_t refused = 0, tries = 2000;
  for (int64_t i = 0; i < tries; ++i) {
    auto bytes = whole;
    for (auto left = 1 + random.below(3); left > 0; --left)
      bytes[random.below(random.below(2) == 0 ? 44 : bytes.size())] = static_cast<char>(random.below(256));
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size()));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    try {
      const auto audio = read_audio(path);
      CHECK(audio.samples.size() <= 8 * bytes.size());  // a bit a sample, at least
    } catch (const FileError& error) {
      CHECK(std::string(error.what()).rfind(path + ": ", 0) == 0);
      ++refused;
    }
  }
  CHECK(refused > tries / 10);
  CHECK(refused < tries * 9 / 10);
}
