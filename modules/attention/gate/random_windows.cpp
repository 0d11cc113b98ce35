#include "modules/attention/gate/random_windows.h"

#include "modules/tensor/torch.h"

namespace headlab {

void RandomWindowsOptions::describe(Fields& fields) {
  fields.add("set", set, "windows that a head may draw: keys it sees, itself included")
      .at_least(0)
      .unit("tokens")
      .means("0: no window")
      .required();
}

void RandomWindowsOptions::rules(Problems& problems) const {
  if (set.empty()) problems.add("set", "expected at least one window");
}

void RandomWindows::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto u = torch::rand({shape_->original_heads}, generator("window"), torch::kFloat64);
  std::vector<int64_t> drawn;
  for (int64_t h = 0; h < shape_->original_heads; ++h)
    drawn.push_back(set_.at(static_cast<std::size_t>(u[h].item<double>() * static_cast<double>(set_.size()))));
  set_windows(drawn);
}

}  // namespace headlab
