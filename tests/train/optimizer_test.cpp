#include "src/train/optimizer.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "modules/tensor/torch.h"
#include "src/train/optimizer/adam.h"
#include "src/train/optimizer/sgd.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/places.h"

namespace headlab {
namespace {

using Numbers = std::vector<double>;

Numbers numbers_of(const Tensor& x) {
  const auto flat = x.detach().to(torch::kFloat64).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// Gradients that differ from step to step and from number to number.
Tensor gradient_of(const Tensor& parameter, int64_t step) {
  return noise(parameter.sizes(), "gradient" + std::to_string(step));
}

NamedParameters two_parameters() {
  return {{"matrix", noise({3, 4}, "matrix").requires_grad_()}, {"vector", noise({5}, "vector").requires_grad_()}};
}

void give_gradients(const NamedParameters& parameters, int64_t step) {
  for (const auto& [name, parameter] : parameters) Tensor(parameter).mutable_grad() = gradient_of(parameter, step);
}

/// One number's update, written out: called with t = 1, 2, ...
using Reference = std::function<double(double w, double g, int64_t t, double lr, double& m, double& v)>;

void compare(Optimizer& optimizer, const NamedParameters& parameters,
             const std::map<std::string, Reference>& references) {
  std::map<std::string, Numbers> w, m, v;
  for (const auto& [name, parameter] : parameters) {
    w[name] = numbers_of(parameter);
    m[name] = v[name] = Numbers(w[name].size(), 0);
  }
  for (int64_t step = 1; step <= 10; ++step) {
    const double lr = 0.1 / static_cast<double>(step);
    give_gradients(parameters, step);
    for (const auto& [name, parameter] : parameters) {
      const auto g = numbers_of(parameter.grad());
      for (std::size_t i = 0; i < g.size(); ++i)
        w[name][i] = references.at(name)(w[name][i], g[i], step, lr, m[name][i], v[name][i]);
    }
    optimizer.step(lr);
    for (const auto& [name, parameter] : parameters) {
      const auto got = numbers_of(parameter);
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(name << "[" << i << "] after step " << step);
        CHECK(got[i] == Approx(w[name][i]).epsilon(1e-12).margin(1e-13));
      }
    }
  }
}

Reference adam(double b1, double b2, double epsilon, double decay) {
  return [=](double w, double g, int64_t t, double lr, double& m, double& v) {
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const double m_hat = m / (1 - std::pow(b1, t)), v_hat = v / (1 - std::pow(b2, t));
    return w - lr * decay * w - lr * m_hat / (std::sqrt(v_hat) + epsilon);
  };
}

Reference sgd(double momentum, bool nesterov) {
  return [=](double w, double g, int64_t, double lr, double& m, double&) {
    m = momentum * m + g;
    return w - lr * (nesterov ? g + momentum * m : m);
  };
}

Choice choice_of(const std::string& type, const nlohmann::json& options) {
  Choice choice(optimizer_catalogue, type);
  Fields fields;
  choice.options().describe(fields);
  for (const auto& field : fields.all()) {
    if (auto* const* number = std::get_if<double*>(&field.value)) **number = options.value(field.name, **number);
    if (auto* const* flag = std::get_if<bool*>(&field.value)) **flag = options.value(field.name, **flag);
  }
  return choice;
}

}  // namespace

TEST_CASE("adam has the paper's decays and epsilon, and is its formula number by number", "[train]") {
  const AdamOptions paper;
  CHECK(paper.beta1 == 0.9);
  CHECK(paper.beta2 == 0.98);
  CHECK(paper.epsilon == 1e-9);
  const DefaultDtype in_double(torch::kFloat64);
  const auto parameters = two_parameters();
  Adam optimizer(paper, parameters);
  compare(optimizer, parameters, {{"matrix", adam(0.9, 0.98, 1e-9, 0)}, {"vector", adam(0.9, 0.98, 1e-9, 0)}});
}

TEST_CASE("adamw decays matrices beside the moments, and vectors only when told", "[train]") {
  const DefaultDtype in_double(torch::kFloat64);
  for (const bool vectors : {false, true}) {
    AdamWOptions options;
    options.weight_decay = 0.4;
    options.decay_vectors = vectors;
    const auto parameters = two_parameters();
    AdamW optimizer(options, parameters);
    compare(optimizer, parameters,
            {{"matrix", adam(0.9, 0.98, 1e-9, 0.4)}, {"vector", adam(0.9, 0.98, 1e-9, vectors ? 0.4 : 0)}});
  }
}

TEST_CASE("sgd follows the gradient, its decayed sum, or looks ahead", "[train]") {
  const DefaultDtype in_double(torch::kFloat64);
  for (const auto& [momentum, nesterov] : std::vector<std::pair<double, bool>>{{0, false}, {0.9, false}, {0.6, true}}) {
    SgdOptions options;
    options.momentum = momentum;
    options.nesterov = nesterov;
    const auto parameters = two_parameters();
    Sgd optimizer(options, parameters);
    compare(optimizer, parameters, {{"matrix", sgd(momentum, nesterov)}, {"vector", sgd(momentum, nesterov)}});
    CHECK(optimizer.state().size() == (momentum > 0 ? 2 : 0));
  }
  SgdOptions wrong;
  wrong.momentum = 0;
  wrong.nesterov = true;
  Problems problems;
  wrong.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "nesterov");
}

TEST_CASE("each optimiser gives the weights that PyTorch's gives in 10 steps", "[train]") {
  const DefaultDtype in_double(torch::kFloat64);
  std::ifstream file(test::in_source("tests/golden/optimizers.json"));
  const auto golden = nlohmann::json::parse(file);
  REQUIRE(golden.at("cases").size() == 6);
  for (const auto& c : golden.at("cases")) {
    INFO(c.at("optimizer") << " " << c.at("options"));
    NamedParameters parameters;
    for (const auto& [name, shape] : golden.at("shapes").items()) {
      const auto values = torch::tensor(c.at("start").at(name).get<Numbers>(), torch::kFloat64);
      parameters.emplace_back(name, values.reshape(shape.get<std::vector<int64_t>>()).requires_grad_());
    }
    const auto optimizer = optimizers().make(choice_of(c.at("optimizer"), c.at("options")), parameters);
    REQUIRE(c.at("steps").size() == 10);
    for (const auto& step : c.at("steps")) {
      for (auto& [name, parameter] : parameters)
        parameter.mutable_grad() =
            torch::tensor(step.at("gradients").at(name).get<Numbers>(), torch::kFloat64).reshape(parameter.sizes());
      optimizer->step(golden.at("learning_rate"));
      for (const auto& [name, parameter] : parameters) {
        const auto got = numbers_of(parameter), expected = step.at("weights").at(name).get<Numbers>();
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-13));
      }
    }
  }
}

TEST_CASE("an optimiser that is restored goes on to the same bits", "[train]") {
  for (const auto& name : optimizer_catalogue().names()) {
    INFO(name);
    const Choice choice(optimizer_catalogue, name);
    const auto whole = two_parameters();
    const auto optimizer = optimizers().make(choice, whole);
    TensorMap saved;
    NamedParameters rest;
    for (int64_t step = 1; step <= 10; ++step) {
      if (step == 5) {
        for (const auto& [key, tensor] : optimizer->state()) saved[key] = tensor.clone();
        for (const auto& [key, parameter] : whole) rest.emplace_back(key, parameter.detach().clone().requires_grad_());
      }
      give_gradients(whole, step);
      optimizer->step(0.01);
    }
    const auto resumed = optimizers().make(choice, rest);
    resumed->restore(saved, "test");
    for (int64_t step = 5; step <= 10; ++step) {
      give_gradients(rest, step);
      resumed->step(0.01);
    }
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(torch::equal(whole[i].second, rest[i].second));
  }
}

TEST_CASE("another model's optimiser state is refused before anything is copied", "[train]") {
  const auto parameters = two_parameters();
  Sgd optimizer(SgdOptions{}, parameters);
  give_gradients(parameters, 1);
  optimizer.step(0.1);
  const auto before = optimizer.state().at("m.matrix").clone();
  auto state = optimizer.state();
  state["m.matrix"] = torch::zeros({3, 4});
  state["m.vector"] = torch::zeros({4});
  CHECK_THROWS_WITH(optimizer.restore(state, "a.safetensors"), "a.safetensors: m.vector: expected [5], got [4]");
  state.erase("m.vector");
  CHECK_THROWS_WITH(optimizer.restore(state, "a.safetensors"), ContainsSubstring("no m.vector"));
  CHECK(torch::equal(optimizer.state().at("m.matrix"), before));
}

TEST_CASE("a parameter without a gradient is left alone by every optimiser", "[train]") {
  for (const auto& name : optimizer_catalogue().names()) {
    INFO(name);
    const auto parameters = two_parameters();
    const auto optimizer = optimizers().make(Choice(optimizer_catalogue, name), parameters);
    const auto before = parameters[1].second.detach().clone();
    for (int64_t step = 1; step <= 3; ++step) {
      Tensor(parameters[0].second).mutable_grad() = gradient_of(parameters[0].second, step);
      optimizer->step(0.1);
    }
    CHECK(torch::equal(parameters[1].second, before));
    CHECK_FALSE(torch::equal(parameters[0].second, noise({3, 4}, "matrix")));
  }
}

}  // namespace headlab
