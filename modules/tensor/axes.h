#pragma once

#include <string>
#include <vector>

#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// Which unit of an attention a stretch of a parameter belongs to.
enum class Unit { head, group };

/// One stretch: `count(unit)` units of `width` entries each along `dim`, starting at `offset`.
struct HeadAxis {
  std::string parameter;  // name within the attention: "project.weight"
  Unit unit = Unit::head;
  int64_t dim = 0, width = 1, offset = 0;
};

/// Says once where heads (and key/value groups) lie in each parameter; removal, training or freezing of some heads,
/// per-head gradients and counts all come from it. Stretches of one parameter and dim must cover that dim whole, in
/// order.
class HeadAxes {
 public:
  /// Names that follow are below `prefix` ("project.").
  HeadAxes under(const std::string& prefix) const { return HeadAxes(stretches_, prefix_ + prefix); }
  HeadAxes() : stretches_(std::make_shared<std::vector<HeadAxis>>()) {}
  void head(const std::string& parameter, int64_t dim, int64_t width, int64_t offset = 0) {
    stretches_->push_back({prefix_ + parameter, Unit::head, dim, width, offset});
  }
  void group(const std::string& parameter, int64_t dim, int64_t width, int64_t offset = 0) {
    stretches_->push_back({prefix_ + parameter, Unit::group, dim, width, offset});
  }
  const std::vector<HeadAxis>& all() const& { return *stretches_; }
  std::vector<HeadAxis> all() const&& { return *stretches_; }  // of a temporary: a loop over them outlives it

 private:
  HeadAxes(std::shared_ptr<std::vector<HeadAxis>> stretches, std::string prefix)
      : stretches_(std::move(stretches)), prefix_(std::move(prefix)) {}
  std::shared_ptr<std::vector<HeadAxis>> stretches_;
  std::string prefix_;
};

/// Cuts every parameter (and buffer) of `module` down to the units listed, in that order. Positions, not names: 0 is
/// the first unit that is there now.
void keep_units(torch::nn::Module& module, const HeadAxes& axes, const std::vector<int64_t>& heads,
                const std::vector<int64_t>& groups);

/// The number of parameter entries that belong to one head (Unit::head stretches only).
int64_t entries_per_head(torch::nn::Module& module, const HeadAxes& axes);

/// For one parameter: 1 where an entry belongs to one of `heads` (positions), 0 elsewhere; undefined where none do.
Tensor entries_of(torch::nn::Module& module, const HeadAxes& axes, const std::string& parameter,
                  const std::vector<int64_t>& heads);

}  // namespace headlab
