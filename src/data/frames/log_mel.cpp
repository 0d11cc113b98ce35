#include "src/data/frames/log_mel.h"

#include <algorithm>
#include <cmath>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

int64_t samples_of(double milliseconds, int64_t rate) {
  return static_cast<int64_t>(std::llround(milliseconds * static_cast<double>(rate) / 1000));
}

double mel_of(double hz) { return 2595 * std::log10(1 + hz / 700); }
double hz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

std::string whole(double hz) { return std::to_string(std::llround(hz)); }

}  // namespace

int64_t LogMelOptions::window_samples() const { return samples_of(window, rate); }
int64_t LogMelOptions::hop_samples() const { return samples_of(hop, rate); }
int64_t LogMelOptions::fft_samples() const {
  if (fft > 0) return fft;
  int64_t size = 1;
  while (size < window_samples()) size *= 2;
  return size;
}

void LogMelOptions::describe(Fields& fields) {
  fields.add("rate", rate, "of the recordings; one of another rate is refused")
      .at_least(1)
      .at_most(1e6)
      .unit("samples a second");
  fields.add("window", window, "how long a frame listens").above(0).at_most(1000).unit("ms");
  fields.add("hop", hop, "from one frame to the next").above(0).at_most(1000).unit("ms");
  fields.add("fft", fft, "samples of the Fourier transform; the window is filled up with zeros")
      .at_least(0)
      .at_most(1 << 20)
      .means("0: the smallest power of 2 that holds a window");
  fields.add("mels", mels, "bands, equally wide on the mel scale: the numbers of a frame").at_least(1);
  fields.add("low", low, "where the lowest band begins").at_least(0).unit("Hz");
  fields.add("high", high, "where the highest band ends").at_least(0).means("0: half the rate").unit("Hz");
  fields.add("floor", floor, "the least power whose logarithm is taken").above(0);
  fields.add("pre_emphasis", pre_emphasis, "share of the sample before that each sample loses").at_least(0).at_most(1);
  fields.add("normalise", normalise, "recording: each band has mean 0 and deviation 1 over a recording's frames")
      .one_of({"none", "recording"});
}

void LogMelOptions::rules(Problems& problems) const {
  const auto count = problems.found.size();
  if (window_samples() < 2)
    problems.add("window", "expected at least 2 samples, got " + std::to_string(window_samples()));
  if (hop_samples() < 1) problems.add("hop", "expected at least 1 sample, got 0");
  if (fft > 0 && fft < window_samples())
    problems.add("fft", "expected at least the samples of a window (" + std::to_string(window_samples()) + "), got " +
                            std::to_string(fft));
  if (high_hz() > static_cast<double>(rate) / 2)
    problems.add(
        "high", "expected at most half the rate (" + whole(static_cast<double>(rate) / 2) + " Hz), got " + whole(high));
  if (low >= high_hz()) problems.add("low", "expected less than high (" + whole(high_hz()) + " Hz), got " + whole(low));
  if (problems.found.size() > count) return;
  const auto filters = mel_filters(*this);
  const auto K = static_cast<std::size_t>(fft_samples() / 2 + 1);
  for (std::size_t j = 0; j * K < filters.size(); ++j) {
    const auto row = filters.begin() + static_cast<std::ptrdiff_t>(j * K);
    if (std::any_of(row, row + static_cast<std::ptrdiff_t>(K), [](double weight) { return weight > 0; })) continue;
    problems.add("mels", "expected bands that hear a frequency of the transform each, got band " + std::to_string(j) +
                             " without one: fewer bands, or a larger fft (now " + std::to_string(fft_samples()) + ")");
    return;
  }
}

std::vector<double> mel_corners(const LogMelOptions& options) {
  const auto low = mel_of(options.low), high = mel_of(options.high_hz());
  std::vector<double> corners;
  for (int64_t j = 0; j < options.mels + 2; ++j)
    corners.push_back(hz_of(low + (high - low) * static_cast<double>(j) / static_cast<double>(options.mels + 1)));
  return corners;
}

std::vector<double> mel_filters(const LogMelOptions& options) {
  const auto corners = mel_corners(options);
  const auto M = options.fft_samples();
  std::vector<double> filters;
  for (std::size_t j = 0; j + 2 < corners.size(); ++j)
    for (int64_t k = 0; k <= M / 2; ++k) {
      const auto hz = static_cast<double>(k * options.rate) / static_cast<double>(M);
      const auto up = (hz - corners[j]) / (corners[j + 1] - corners[j]);
      const auto down = (corners[j + 2] - hz) / (corners[j + 2] - corners[j + 1]);
      filters.push_back(std::max(0.0, std::min(up, down)));
    }
  return filters;
}

LogMel::LogMel(const LogMelOptions& options) : options_(options), filters_(mel_filters(options)) {}

std::vector<float> LogMel::operator()(const std::vector<float>& samples) const {
  if (samples.empty()) throw ShapeError("log_mel: expected at least one sample, got none");
  const torch::NoGradGuard no_grad;
  const auto W = options_.window_samples(), M = options_.fft_samples(), K = M / 2 + 1,
             N = static_cast<int64_t>(samples.size());
  auto y_N = torch::zeros({std::max(N, W)}, torch::kDouble);
  std::copy(samples.begin(), samples.end(), y_N.data_ptr<double>());
  if (options_.pre_emphasis > 0) y_N.slice(0, 1, N) -= options_.pre_emphasis * y_N.slice(0, 0, N - 1).clone();
  const auto window_W = torch::hann_window(W, /*periodic=*/true, torch::kDouble);
  const auto spectrum_TK = at::fft_rfft(y_N.unfold(0, W, options_.hop_samples()) * window_W, M);
  const auto power_TK = torch::view_as_real(spectrum_TK).square().sum(-1);
  const auto filters_JK = torch::tensor(filters_, torch::kDouble).view({options_.mels, K});
  auto z_TJ = power_TK.matmul(filters_JK.t()).clamp_min(options_.floor).log();
  if (options_.normalise == "recording") z_TJ = (z_TJ - z_TJ.mean(0)) / (z_TJ.var(0, /*unbiased=*/false).sqrt() + 1e-5);
  const auto frames = z_TJ.to(torch::kFloat).contiguous();
  return {frames.data_ptr<float>(), frames.data_ptr<float>() + frames.numel()};
}

}  // namespace headlab
