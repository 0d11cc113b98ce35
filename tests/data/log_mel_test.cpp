#include "src/data/frames/log_mel.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

constexpr double pi = 3.14159265358979323846;

LogMelOptions plain_features() {
  LogMelOptions options;
  options.rate = 8000;
  options.mels = 20;
  options.low = 100;
  options.high = 3800;
  options.normalise = "none";
  return options;
}

std::vector<float> noise(std::size_t count) {
  Random random(3);
  std::vector<float> samples(count);
  for (auto& sample : samples) sample = static_cast<float>(0.1 * random.normal());
  return samples;
}

double mel(double hz) { return 2595 * std::log10(1 + hz / 700); }

/// log_mel.h's formulas, sum by sum.
std::vector<std::vector<double>> by_definition(const std::vector<float>& x, const LogMelOptions& options, int64_t W,
                                               int64_t H, int64_t M) {
  std::vector<std::vector<double>> z;
  for (int64_t t = 0; t == 0 || t * H + W <= static_cast<int64_t>(x.size()); ++t) {
    auto& row = z.emplace_back(static_cast<std::size_t>(options.mels), 0.0);
    for (int64_t k = 0; k <= M / 2; ++k) {
      std::complex<double> sum = 0;
      for (int64_t n = 0; n < W; ++n) {
        const auto i = static_cast<std::size_t>(t * H + n);
        const double y = i < x.size() ? x[i] - (i > 0 ? options.pre_emphasis * x[i - 1] : 0) : 0;
        const double angle = 2 * pi * static_cast<double>(k * n % M) / static_cast<double>(M);
        sum += (0.5 - 0.5 * std::cos(2 * pi * static_cast<double>(n) / static_cast<double>(W))) * y *
               std::polar(1.0, -angle);
      }
      const auto hz = static_cast<double>(k * options.rate) / static_cast<double>(M);
      const auto low = mel(options.low), step = (mel(options.high) - low) / static_cast<double>(options.mels + 1);
      for (int64_t j = 0; j < options.mels; ++j) {
        const auto corner = [&](int64_t i) {
          return 700 * (std::pow(10, (low + step * static_cast<double>(j + i)) / 2595) - 1);
        };
        double weight = 0;
        if (hz > corner(0) && hz <= corner(1)) weight = (hz - corner(0)) / (corner(1) - corner(0));
        if (hz > corner(1) && hz < corner(2)) weight = (corner(2) - hz) / (corner(2) - corner(1));
        row[static_cast<std::size_t>(j)] += weight * std::norm(sum);
      }
    }
    for (auto& number : row) number = std::log(std::max(options.floor, number));
  }
  return z;
}

void check_equal(const std::vector<float>& frames, const std::vector<std::vector<double>>& expected) {
  REQUIRE(frames.size() == expected.size() * expected.front().size());
  for (std::size_t i = 0; i < frames.size(); ++i)
    CHECK(frames[i] ==
          Approx(expected[i / expected.front().size()][i % expected.front().size()]).epsilon(1e-5).margin(1e-6));
}

}  // namespace

TEST_CASE("log-mel frames equal sums over samples by the definition of the Fourier transform", "[log-mel][paper-23]") {
  auto options = plain_features();
  const auto samples = noise(1000);
  const auto frames = LogMel(options)(samples);
  CHECK(frames.size() == 20 * 11);  // windows of 200 samples that fit into 1000, 80 apart
  check_equal(frames, by_definition(samples, options, 200, 80, 256));
  options.pre_emphasis = 0.97;
  check_equal(LogMel(options)(samples), by_definition(samples, options, 200, 80, 256));
  options.window = 30;
  options.hop = 7.5;
  options.fft = 600;
  check_equal(LogMel(options)(samples), by_definition(samples, options, 240, 60, 600));
}

TEST_CASE("a recording shorter than a window is one frame, filled up with zeros, and silence is the floor",
          "[log-mel][paper-23]") {
  auto options = plain_features();
  options.pre_emphasis = 0.9;
  for (const std::size_t count : {1, 50, 199, 200, 279}) {
    const auto samples = noise(count);
    const auto frames = LogMel(options)(samples);
    CHECK(frames.size() == 20);
    check_equal(frames, by_definition(samples, options, 200, 80, 256));
  }
  for (const auto number : LogMel(options)(std::vector<float>(300, 0.0F))) CHECK(number == Approx(std::log(1e-10)));
  CHECK_THROWS_AS(LogMel(options)({}), ShapeError);
}

TEST_CASE("mel bands are equally wide on HTK's scale, and neighbours add up to one", "[log-mel][paper-23]") {
  const auto options = plain_features();
  const auto corners = mel_corners(options);
  REQUIRE(corners.size() == 22);
  CHECK(corners.front() == Approx(100));
  CHECK(corners.back() == Approx(3800));
  // 1 + f / 700 is a geometric series where mel(f) is an arithmetic one.
  for (std::size_t i = 0; i + 1 < corners.size(); ++i)
    CHECK((1 + corners[i + 1] / 700) / (1 + corners[i] / 700) == Approx(std::pow(4500.0 / 800, 1.0 / 21)));
  const auto filters = mel_filters(options);
  REQUIRE(filters.size() == 20 * 129);
  for (std::size_t k = 0; k < 129; ++k) {
    const auto hz = 8000.0 * static_cast<double>(k) / 256;
    double sum = 0;
    for (std::size_t j = 0; j < 20; ++j) {
      CHECK((filters[j * 129 + k] > 0) == (hz > corners[j] && hz < corners[j + 2]));
      sum += filters[j * 129 + k];
    }
    if (hz >= corners[1] && hz <= corners[20]) CHECK(sum == Approx(1));
  }
}

TEST_CASE("a pure tone is loudest in the band that holds it", "[log-mel][paper-23]") {
  const auto options = plain_features();
  const auto corners = mel_corners(options);
  for (std::size_t band = 2; band < 20; ++band) {
    std::vector<float> tone(400);
    for (std::size_t n = 0; n < tone.size(); ++n)
      tone[n] = static_cast<float>(std::sin(2 * pi * corners[band + 1] * static_cast<double>(n) / 8000));
    const auto frames = LogMel(options)(tone);
    for (std::size_t t = 0; t * 20 < frames.size(); ++t) {
      const auto row = frames.begin() + static_cast<std::ptrdiff_t>(20 * t);
      CHECK(std::max_element(row, row + 20) - row == static_cast<std::ptrdiff_t>(band));
    }
  }
}

TEST_CASE("normalised bands have mean 0 and deviation 1 over a recording, however loud it is", "[log-mel][paper-23]") {
  auto options = plain_features();
  const auto samples = noise(4000);
  const auto z = LogMel(options)(samples);
  options.normalise = "recording";
  const auto normal = LogMel(options)(samples);
  const auto T = z.size() / 20;
  for (std::size_t j = 0; j < 20; ++j) {
    double mean = 0, square = 0;
    for (std::size_t t = 0; t < T; ++t) mean += z[20 * t + j] / static_cast<double>(T);
    for (std::size_t t = 0; t < T; ++t) square += std::pow(z[20 * t + j] - mean, 2) / static_cast<double>(T);
    for (std::size_t t = 0; t < T; ++t)
      CHECK(normal[20 * t + j] == Approx((z[20 * t + j] - mean) / (std::sqrt(square) + 1e-5)).margin(1e-4));
  }
  auto louder = samples;
  for (auto& sample : louder) sample *= 8;
  const auto same = LogMel(options)(louder);
  for (std::size_t i = 0; i < same.size(); ++i) CHECK(same[i] == Approx(normal[i]).margin(1e-5));
  for (const auto number : LogMel(options)(std::vector<float>(300, 0.0F))) CHECK(number == 0);
}

TEST_CASE("features that can't be are refused before any sound is read", "[log-mel][paper-23]") {
  const auto refused = [](const std::function<void(LogMelOptions&)>& change) {
    auto options = plain_features();
    change(options);
    Problems problems;
    options.rules(problems);
    return problems.found.empty() ? std::string()
                                  : problems.found.front().field + ": " + problems.found.front().message;
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK(refused([](auto& o) { o.fft = 128; }) == "fft: expected at least the samples of a window (200), got 128");
  CHECK(refused([](auto& o) { o.high = 4100; }) == "high: expected at most half the rate (4000 Hz), got 4100");
  CHECK(refused([](auto& o) { o.low = 3900; }) == "low: expected less than high (3800 Hz), got 3900");
  CHECK(refused([](auto& o) { o.window = 0.1; }) == "window: expected at least 2 samples, got 1");
  CHECK(refused([](auto& o) { o.hop = 0.01; }) == "hop: expected at least 1 sample, got 0");
  CHECK(refused([](auto& o) { o.mels = 200; }) ==
        "mels: expected bands that hear a frequency of the transform each, got band 0 without one: fewer bands, or a "
        "larger fft (now 256)");
}
