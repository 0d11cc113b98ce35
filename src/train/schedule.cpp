#include "src/train/schedule.h"

#include <algorithm>
#include <cmath>

namespace headlab {
namespace {

struct TransformerOptions : Described<TransformerOptions> {
  double factor = 1;
  int64_t warmup = 4000;
  void describe(Fields& fields) override {
    fields.add("factor", factor, "multiplies the whole").above(0);
    fields.add("warmup", warmup, "steps until the peak").at_least(1).unit("steps");
  }
};

/// rate = factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)          (1706.03762, eq. 3)
struct TransformerSchedule : Schedule {
  TransformerSchedule(const TransformerOptions& options, int64_t d_model, int64_t)
      : factor(options.factor / std::sqrt(static_cast<double>(d_model))), warmup(static_cast<double>(options.warmup)) {}
  double rate(int64_t step) const override {
    const auto s = static_cast<double>(step);
    return factor * std::min(1 / std::sqrt(s), s / (warmup * std::sqrt(warmup)));
  }
  double factor, warmup;
};

struct ConstantOptions : Described<ConstantOptions> {
  double peak = 1e-3;
  int64_t warmup = 0;
  void describe(Fields& fields) override {
    fields.add("peak", peak, "the rate after the warm-up").above(0);
    fields.add("warmup", warmup, "steps until the peak, linearly").at_least(0).unit("steps");
  }
};

struct PeakOptions : Described<PeakOptions> {
  double peak = 1e-3, end = 0;
  int64_t warmup = 0;
  void describe(Fields& fields) override {
    fields.add("peak", peak, "the highest rate").above(0);
    fields.add("warmup", warmup, "steps until the peak, linearly").at_least(0).unit("steps");
    fields.add("end", end, "the rate of the last step, as a share of the peak").at_least(0).at_most(1);
  }
};

struct InverseSqrtOptions : Described<InverseSqrtOptions> {
  double peak = 1e-3;
  int64_t warmup = 4000;
  void describe(Fields& fields) override {
    fields.add("peak", peak, "the rate at the end of the warm-up").above(0);
    fields.add("warmup", warmup, "steps until the peak, linearly; after four times as many the rate is half of it")
        .at_least(1)
        .unit("steps");
  }
};

struct StepwiseOptions : Described<StepwiseOptions> {
  double peak = 1e-3, factor = 0.5;
  int64_t every = 1000, warmup = 0;
  void describe(Fields& fields) override {
    fields.add("peak", peak, "the highest rate").above(0);
    fields.add("warmup", warmup, "steps until the peak, linearly").at_least(0).unit("steps");
    fields.add("every", every, "steps from one change of the rate to the next, counted from the end of the warm-up")
        .at_least(1)
        .unit("steps");
    fields.add("factor", factor, "multiplies the rate at each change").above(0).at_most(1);
  }
};

double warmed(double peak, int64_t warmup, int64_t step) {
  return peak * static_cast<double>(step) / static_cast<double>(warmup);
}

// The share of the way from the end of the warm-up to the last step.
double progress(int64_t warmup, int64_t steps, int64_t step) {
  return std::clamp(static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(steps - warmup, 1)), 0.0,
                    1.0);
}

/// peak, after the warm-up
struct ConstantSchedule : Schedule {
  ConstantSchedule(const ConstantOptions& options, int64_t, int64_t) : options(options) {}
  double rate(int64_t step) const override {
    return step < options.warmup ? warmed(options.peak, options.warmup, step) : options.peak;
  }
  ConstantOptions options;
};

/// peak * sqrt(warmup / step), after the warm-up: "transformer" with its peak given
struct InverseSqrtSchedule : Schedule {
  InverseSqrtSchedule(const InverseSqrtOptions& options, int64_t, int64_t) : options(options) {}
  double rate(int64_t step) const override {
    if (step < options.warmup) return warmed(options.peak, options.warmup, step);
    return options.peak * std::sqrt(static_cast<double>(options.warmup) / static_cast<double>(step));
  }
  InverseSqrtOptions options;
};

/// peak * factor^floor((step - warmup) / every), after the warm-up
struct StepwiseSchedule : Schedule {
  StepwiseSchedule(const StepwiseOptions& options, int64_t, int64_t) : options(options) {}
  double rate(int64_t step) const override {
    if (step < options.warmup) return warmed(options.peak, options.warmup, step);
    return options.peak * std::pow(options.factor, static_cast<double>((step - options.warmup) / options.every));
  }
  StepwiseOptions options;
};

/// from peak to end * peak in a straight line
struct LinearSchedule : Schedule {
  LinearSchedule(const PeakOptions& options, int64_t, int64_t steps) : options(options), steps(steps) {}
  double rate(int64_t step) const override {
    if (step < options.warmup) return warmed(options.peak, options.warmup, step);
    return options.peak * (1 - (1 - options.end) * progress(options.warmup, steps, step));
  }
  PeakOptions options;
  int64_t steps;
};

/// from peak to end * peak along half a cosine          (1608.03983)
struct CosineSchedule : Schedule {
  CosineSchedule(const PeakOptions& options, int64_t, int64_t steps) : options(options), steps(steps) {}
  double rate(int64_t step) const override {
    if (step < options.warmup) return warmed(options.peak, options.warmup, step);
    const auto wave = 0.5 * (1 + std::cos(3.14159265358979323846 * progress(options.warmup, steps, step)));
    return options.peak * (options.end + (1 - options.end) * wave);
  }
  PeakOptions options;
  int64_t steps;
};

}  // namespace

const Schedules& schedules() {
  static const Schedules registry =
      Schedules("schedule", "the learning rate of each step")
          .entry<TransformerSchedule, TransformerOptions>(
              "transformer", "linear warm-up, then the inverse square root of the step", "1706.03762")
          .entry<ConstantSchedule, ConstantOptions>("constant", "one rate after the warm-up")
          .entry<InverseSqrtSchedule, InverseSqrtOptions>(
              "inverse_sqrt", "the inverse square root of the step after the warm-up, from a given peak", "1706.03762")
          .entry<StepwiseSchedule, StepwiseOptions>("stepwise", "multiplied by a factor every so many steps")
          .entry<LinearSchedule, PeakOptions>("linear", "a straight line from the peak to the end")
          .entry<CosineSchedule, PeakOptions>("cosine", "half a cosine from the peak to the end", "1608.03983");
  return registry;
}
const Catalogue& schedule_catalogue() { return schedules().catalogue(); }

}  // namespace headlab
