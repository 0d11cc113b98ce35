#include "src/train/penalty.h"

#include "modules/tensor/torch.h"
#include "src/train/parameter_names.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

Choice penalty(const std::string& type, double coefficient, std::vector<std::string> parameters = {},
               std::vector<std::string> except = {"bias", "norm"}) {
  Choice choice(penalty_catalogue, type);
  auto& options = choice.as<PenaltyOptions>();
  options.coefficient = coefficient;
  options.parameters = std::move(parameters);
  options.except = std::move(except);
  return choice;
}

NamedParameters some_parameters() {
  const auto make = [](const std::string& name, at::IntArrayRef shape) {
    return std::pair(name,
                     torch::empty(shape, torch::kFloat64).normal_(0, 1, named_generator(3, name)).requires_grad_());
  };
  return {make("encoder.layers.0.self_attention.project.weight", {3, 4}),
          make("encoder.layers.0.self_attention.project.query_bias", {3}),
          make("encoder.layers.0.self_attention_norm.weight", {4}), make("encoder.norm.bias", {4}),
          make("decoder.layers.0.feed_forward.inner.weight", {2, 4})};
}

std::vector<std::string> names_of(const NamedParameters& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("patterns choose parameters by the parts of their names", "[train]") {
  const std::string name = "encoder.layers.10.self_attention.project.query_bias";
  for (const char* fits : {"*", "encoder", "encoder.layers", "layers.10", "bias", "query_bias", "attention",
                           "self_attention", "project.bias", "query_*", "*_attention.project", "en*r"}) {
    CAPTURE(fits);
    CHECK(name_matches(fits, name));
  }
  for (const char* misses : {"", "decoder", "encoder.10", "layers.1", "ias", "encode", "query", "attention.query_bias",
                             "query*_weight", "layer"}) {
    CAPTURE(misses);
    CHECK_FALSE(name_matches(misses, name));
  }
}

TEST_CASE("biases and norms are left out unless the exceptions say otherwise", "[train]") {
  const auto all = some_parameters();
  CHECK(names_of(select_parameters(all, {}, {"bias", "norm"}, "x")) ==
        std::vector<std::string>{"encoder.layers.0.self_attention.project.weight",
                                 "decoder.layers.0.feed_forward.inner.weight"});
  CHECK(select_parameters(all, {}, {}, "x").size() == all.size());
  CHECK(names_of(select_parameters(all, {"encoder"}, {"norm"}, "x")) ==
        std::vector<std::string>{"encoder.layers.0.self_attention.project.weight",
                                 "encoder.layers.0.self_attention.project.query_bias"});
}

TEST_CASE("a pattern that chooses nothing is an error with a name that is near", "[train]") {
  const auto all = some_parameters();
  CHECK_THROWS_WITH(
      select_parameters(all, {"encodr"}, {}, "penalties[1]"),
      ContainsSubstring(
          "penalties[1].parameters: no parameter of the model has \"encodr\"; did you mean \"encoder\"?") &&
          ContainsSubstring("names are made of: bias, decoder, encoder"));
  CHECK_THROWS_WITH(
      select_parameters(all, {}, {"biases"}, "penalties[0]"),
      ContainsSubstring("penalties[0].except: no parameter of the model has \"biases\"; did you mean \"bias\"?"));
  CHECK_THROWS_WITH(select_parameters(all, {"norm"}, {"norm"}, "penalties[0]"),
                    ContainsSubstring("penalties[0]: expected at least one parameter"));
  const NamedParameters bare{{"weight", torch::ones({1})}};  // a model without biases and norms
  CHECK(select_parameters(bare, {}, {"bias", "norm"}, "x").size() == 1);
}

TEST_CASE("the gradient of l1 is c sign(w), of l2 c w, on the chosen parameters alone", "[train]") {
  for (const std::string type : {"l1", "l2"}) {
    INFO(type);
    const auto parameters = some_parameters();
    {
      torch::NoGradGuard no_grad;
      Tensor(parameters[0].second)[0][0] = 0;  // where |w| has a corner
    }
    // Of the other decoder weight no gradient has come from the loss.
    for (std::size_t i = 0; i + 1 < parameters.size(); ++i)
      Tensor(parameters[i].second).mutable_grad() = torch::full_like(parameters[i].second, 0.25);
    const auto made = penalties().make(penalty(type, 0.3), parameters, "penalties[0]");
    made->add_gradients();
    double expected_value = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, parameter] = parameters[i];
      INFO(name);
      const bool chosen = i == 0 || i == 4;
      const auto w = parameter.detach().flatten();
      const auto g = parameter.grad().flatten();
      for (int64_t k = 0; k < w.numel(); ++k) {
        const auto weight = w[k].item<double>();
        const double sign = weight > 0 ? 1 : weight < 0 ? -1 : 0;
        const double from_loss = i == 4 ? 0 : 0.25, added = chosen ? 0.3 * (type == "l1" ? sign : weight) : 0;
        CHECK(g[k].item<double>() == Approx(from_loss + added).epsilon(1e-14).margin(1e-15));
        if (chosen) expected_value += 0.3 * (type == "l1" ? std::abs(weight) : weight * weight / 2);
      }
    }
    CHECK(made->value().item<double>() == Approx(expected_value));
    const auto before = parameters[0].second.detach().clone();
    made->decay([&](const std::string&) { return 0.5; });
    CHECK(torch::equal(parameters[0].second, before));
  }
}

TEST_CASE("l1 and l2 are the derivatives of their values", "[train]") {
  for (const std::string type : {"l1", "l2"}) {
    const auto parameters = some_parameters();
    const auto made = penalties().make(penalty(type, 0.7, {"decoder"}), parameters, "penalties[0]");
    made->add_gradients();
    auto weight = parameters[4].second;
    constexpr double h = 1e-6;
    for (int64_t k = 0; k < weight.numel(); ++k) {
      torch::NoGradGuard no_grad;
      auto number = weight.view(-1)[k];
      const auto w = number.item<double>();
      number.fill_(w + h);
      const auto above = made->value().item<double>();
      number.fill_(w - h);
      const auto below = made->value().item<double>();
      number.fill_(w);
      CHECK(weight.grad().view(-1)[k].item<double>() == Approx((above - below) / (2 * h)).epsilon(1e-7));
    }
  }
}

TEST_CASE("decay takes lr c w off each chosen weight and leaves the gradients", "[train]") {
  const auto parameters = some_parameters();
  std::vector<Tensor> before;
  for (const auto& [name, parameter] : parameters) before.push_back(parameter.detach().clone());
  const auto made = penalties().make(penalty("decay", 0.2, {"encoder"}, {"norm"}), parameters, "penalties[0]");
  made->add_gradients();
  made->decay([&](const std::string&) { return 0.5; });
  CHECK_FALSE(made->value().defined());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CHECK_FALSE(parameters[i].second.grad().defined());
    CHECK(difference(parameters[i].second.detach(), before[i] * (i < 2 ? 1 - 0.5 * 0.2 : 1.0)) < 1e-15);
  }
}

TEST_CASE("a training with penalties takes the step of its whole objective", "[train]") {
  // One step of plain gradient descent: w - lr (g + c1 sign(w) + c2 w), g from the same step without penalties.
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({3, 5, 4});
  const auto train_once = [&](const std::vector<Choice>& penalties) {
    auto model = toy_model(task);
    TrainOptions options;
    options.steps = 1;
    options.batch.max_rows = 2;
    options.accumulate = 2;  // once an update, not once a batch
    options.clip = 0;
    options.log_every = 1;
    options.optimizer.choose("sgd");
    options.schedule.choose("constant");
    options.penalties.items = penalties;
    Trainer trainer(*model, task, options, 16, 9);
    TrainReport last;
    trainer.run({}, [&](const TrainReport& report) { last = report; });
    return std::pair(model, last);
  };
  const auto start = toy_model(task);
  const auto [clean, clean_report] = train_once({});
  const auto [penalised, report] = train_once({penalty("l1", 0.1, {"encoder"}), penalty("l2", 0.3, {"mix.weight"})});
  CHECK(clean_report.loss == Approx(report.loss).epsilon(1e-12));
  CHECK(report.aux.at("penalty") > 0);
  CHECK_FALSE(clean_report.aux.count("penalty"));
  const auto w = start->named_parameters(), with = penalised->named_parameters();
  int changed = 0;
  for (const auto& item : clean->named_parameters()) {
    const auto& name = item.key();
    INFO(name);
    const bool plain = name_matches("bias", name) || name_matches("norm", name);
    Tensor added = torch::zeros_like(w[name]);
    if (!plain && name_matches("encoder", name)) added = added + 0.1 * w[name].detach().sign();
    if (!plain && name_matches("mix.weight", name)) added = added + 0.3 * w[name].detach();
    changed += added.abs().sum().item<double>() > 0;
    CHECK(difference(with[name].detach(), item.value().detach() - 1e-3 * added) < 1e-14);
  }
  CHECK(changed >= 8);
}

TEST_CASE("a penalty with coefficient 0 leaves every bit as it is", "[train]") {
  const ToyTask task({3, 5, 4});
  const auto trained = [&](bool with) {
    auto model = toy_model(task);
    TrainOptions options;
    options.steps = 3;
    options.log_every = 1;
    options.schedule.choose("constant");
    if (with) options.penalties.items = {penalty("l1", 0), penalty("l2", 0), penalty("decay", 0)};
    Trainer(*model, task, options, 16, 9).run({}, [](const TrainReport&) {});
    return model;
  };
  const auto with = trained(true), without = trained(false);
  for (const auto& item : with->named_parameters())
    CHECK(torch::equal(item.value(), without->named_parameters()[item.key()]));
}

TEST_CASE("a penalty on parameters that the model lacks stops a training before it starts", "[train]") {
  const ToyTask task({3});
  auto model = toy_model(task);
  TrainOptions options;
  options.penalties.items = {penalty("l2", 0.1), penalty("l1", 0.1, {"cross_atention"})};
  CHECK_THROWS_WITH(Trainer(*model, task, options, 16, 9),
                    ContainsSubstring("penalties[1].parameters: no parameter of the model has \"cross_atention\"; did "
                                      "you mean \"cross_attention\"?"));
}

}  // namespace headlab
