#include "modules/tensor/dropout.h"

#include <functional>
#include <stdexcept>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

struct DropoutKind {
  std::string name;
  Tensor (*share)(const Tensor& x_BTD);  // a tensor of the mask's shape; nullptr: x's own
};

const std::vector<DropoutKind>& all_kinds() {
  static const std::vector<DropoutKind> kinds{
      {"element", nullptr},
      {"token", [](const Tensor& x_BTD) { return x_BTD.narrow(-1, 0, 1); }},
      {"channel", [](const Tensor& x_BTD) { return x_BTD.narrow(-2, 0, 1); }},
  };
  return kinds;
}

}  // namespace

const std::vector<std::string>& dropout_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& kind : all_kinds()) all.push_back(kind.name);
    return all;
  }();
  return names;
}

Tensor drop(const Tensor& x_BTD, double p, bool training, const std::string& kind) {
  for (const auto& known : all_kinds()) {
    if (known.name != kind) continue;
    if (p == 0 || !training || !known.share) return torch::dropout(x_BTD, p, training);
    return x_BTD * torch::dropout(torch::ones_like(known.share(x_BTD.detach())), p, true);
  }
  throw std::logic_error("drop: no kind " + kind);
}

}  // namespace headlab
