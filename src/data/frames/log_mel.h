#pragma once

#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// How a recording becomes frames. Windows and hops are rounded to whole samples.
struct LogMelOptions : Described<LogMelOptions> {
  int64_t rate = 16000, mels = 40, fft = 0;
  double window = 25, hop = 10, low = 20, high = 0, floor = 1e-10, pre_emphasis = 0;
  std::string normalise = "recording";
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;

  int64_t window_samples() const;  // W
  int64_t hop_samples() const;     // H
  int64_t fft_samples() const;     // M: `fft`, or the smallest power of 2 that is not less than W
  double high_hz() const { return high > 0 ? high : static_cast<double>(rate) / 2; }
};

/// Logarithms of the power in bands that are equally wide on the mel scale
///   y_n    = x_n - pre_emphasis * x_{n-1},  x_{-1} = 0
///   P_tk   = |sum_{n<W} w_n y_{tH+n} e^{-2 pi i k n / M}|^2,  k = 0 .. M/2,  w_n = 1/2 - 1/2 cos(2 pi n / W) (Hann)
///   z_tj   = ln max(floor, sum_k F_jk P_tk),  j < mels
///   F_jk   = max(0, min((f_k - c_j) / (c_{j+1} - c_j), (c_{j+2} - f_k) / (c_{j+2} - c_{j+1}))),  f_k = k rate / M
/// triangles of height 1 whose corners c_0 = low, ..., c_{mels+1} = high (Hz) are equally far apart in
///   mel(f) = 2595 log10(1 + f / 700)                                                                           (HTK)
/// A window stands wherever it fits: T = 1 + floor((N - W) / H); a recording of less than W samples is filled up with
/// zeros. `normalise` "recording": each band has mean 0 and deviation 1 over the recording's frames, that is
/// (z - mean) / (deviation + 1e-5). In double precision.
class LogMel {
 public:
  explicit LogMel(const LogMelOptions& options);
  /// T frames of `mels` numbers, one after another. The samples' rate is the options'; there is at least one of them.
  std::vector<float> operator()(const std::vector<float>& samples) const;

 private:
  LogMelOptions options_;
  std::vector<double> filters_;
};

/// c_0 .. c_{mels+1}.
std::vector<double> mel_corners(const LogMelOptions& options);
/// F, row by row [mels, M/2 + 1].
std::vector<double> mel_filters(const LogMelOptions& options);

}  // namespace headlab
