#include "modules/tensor/init.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "modules/base/random.h"
#include "modules/tensor/torch.h"

namespace headlab {

at::Generator named_generator(uint64_t seed, const std::string& name) {
  return at::make_generator<at::CPUGeneratorImpl>(Random(seed ^ Random(text_hash(name)).next()).next());
}

void initialise(torch::nn::Module& root, uint64_t seed) {
  torch::NoGradGuard no_grad;
  for (const auto& item : root.named_modules("", /*include_self=*/true)) {
    const auto prefix = item.key().empty() ? std::string() : item.key() + ".";
    const auto generator = [&](const std::string& parameter) { return named_generator(seed, prefix + parameter); };
    auto* module = item.value().get();
    if (auto* own = dynamic_cast<Initialised*>(module)) {
      own->draw(generator);
    } else if (auto* linear = module->as<torch::nn::LinearImpl>()) {
      xavier_uniform(linear->weight, linear->weight.size(1), linear->weight.size(0), generator("weight"));
      if (linear->bias.defined()) linear->bias.zero_();
    } else if (!module->parameters(/*recurse=*/false).empty()) {
      throw std::logic_error("initialise: " + item.key() + " has parameters that it does not draw");
    }
  }
}

void xavier_uniform(Tensor weight, int64_t fan_in, int64_t fan_out, at::Generator generator, double gain) {
  const auto bound = gain * std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  // Drawn on the CPU in double, so that float32 and float64 models start from the same numbers on every device.
  weight.copy_(torch::empty(weight.sizes(), torch::kFloat64).uniform_(-bound, bound, generator));
}

}  // namespace headlab
