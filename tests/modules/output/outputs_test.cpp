#include "modules/output/output.h"

#include <limits>
#include <set>

#include "src/checkpoint/checkpoint.h"
#include "src/task/token_loss.h"
#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

constexpr int64_t three_classes = 3;

Choice output_choice(const std::string& type, const std::string& pooling = "") {
  Choice choice(output_catalogue, type);
  if (!pooling.empty()) choice.as<ClassesOutputOptions>().pooling = pooling;
  return choice;
}

// Each output on an encoder, and on a decoder where it fits there alike.
struct Row {
  std::string name, output;
  Choice model;
  std::string shape, rows_shape;
};

std::vector<Row> output_rows() {
  std::vector<Row> rows;
  const auto add = [&](const Choice& output, const std::string& with, const std::string& shape,
                       const std::string& rows_shape) {
    auto encoder = small_encoder_only();
    encoder.output = output;
    rows.push_back(
        {"encoder " + output.type() + with, output.type(), model_choice("encoder_only", encoder), shape, rows_shape});
    auto decoder = small_decoder_only();
    decoder.output = output;
    rows.push_back(
        {"decoder " + output.type() + with, output.type(), model_choice("decoder_only", decoder), shape, rows_shape});
  };
  add(output_choice("language_model"), "", "[3, 8, 11]", "[24, 11]");
  for (const std::string pooling : {"mean", "first", "last"})
    add(output_choice("classes", pooling), " " + pooling, "[3, 3]", "[3, 3]");
  add(output_choice("tags"), "", "[3, 8, 3]", "[24, 3]");
  add(output_choice("spans"), "", "[3, 8, 2]", "[6, 8]");
  return rows;
}

ModelContext with_classes() { return {small_vocabulary, small_vocabulary, {}, three_classes}; }

Tensor rows_of(Model& model, const Batch& batch, const Tensor& rows_N = {}) {
  Forward run;
  return model.row_logits(batch, rows_N, run);
}

Batch longer(const Batch& batch, int64_t more) {
  const auto pad = [&](const Tensor& x) { return torch::constant_pad_nd(x, {0, more}); };
  return {{}, {}, pad(batch.target_BT), pad(batch.target_mask_BT)};
}

}  // namespace

TEST_CASE("every output is tried, and has logits of its shape and a row for each question", "[output]") {
  std::set<std::string> tried;
  for (const auto& row : output_rows()) {
    INFO(row.name);
    auto model = make_model(row.model, with_classes());
    const auto batch = small_batch();
    Forward run;
    CHECK(shape_text(model->logits(batch, run)) == row.shape);
    CHECK(shape_text(rows_of(*model, batch)) == row.rows_shape);
    const auto some = torch::tensor({1, 0}, torch::kLong);
    // Not to the bit: a product of fewer rows may sum in another order.
    CHECK(torch::allclose(rows_of(*model, batch, some), rows_of(*model, batch).index_select(0, some), 1e-6, 1e-6));
    tried.insert(row.output);
  }
  for (const auto& name : outputs().catalogue().names()) CHECK(tried.count(name) == 1);
}

TEST_CASE("padding never changes what an output says", "[output]") {
  const DefaultDtype in_double(torch::kFloat64);
  for (const auto& row : output_rows()) {
    INFO(row.name);
    auto model = make_model(row.model, with_classes());
    const auto batch = small_batch();
    const auto lengths = batch.target_mask_BT.sum(1);
    const auto together = rows_of(*model, longer(batch, 3));
    for (int64_t b = 0; b < 3; ++b) {
      Batch alone;
      alone.target_BT = batch.target_BT.narrow(0, b, 1).narrow(1, 0, lengths[b].item<int64_t>());
      const auto own = rows_of(*model, alone);
      const auto questions = row.rows_shape == "[3, 3]"   ? 1
                             : row.rows_shape == "[6, 8]" ? 2
                                                          : 11;  // a text of 8, and 3 pads
      const auto its = together.narrow(0, b * questions, questions == 11 ? own.size(0) : questions);
      CHECK(difference(questions == 2 ? its.narrow(1, 0, own.size(1)) : its, own) < 1e-12);
    }
  }
}

TEST_CASE("pools are the mean of the tokens, the first and the last one", "[output]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto hidden = noise({2, 5, 4}, "hidden");
  const std::vector<int64_t> lengths{3, 5};
  for (const std::string pooling : {"mean", "first", "last"}) {
    INFO(pooling);
    ClassesOutputOptions options;
    options.pooling = pooling;
    const auto output = std::make_shared<ClassesOutput>(options, OutputContext{4, three_classes, nullptr});
    fill(*output);
    const auto parameters = output->named_parameters();
    const auto logits = output->forward(hidden, mask_of(lengths, 5));
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t c = 0; c < three_classes; ++c) {
        double sum = parameters["project.bias"][c].item<double>();
        for (int64_t d = 0; d < 4; ++d) {
          double pooled = 0;
          const auto length = lengths[static_cast<std::size_t>(b)];
          for (int64_t t = 0; t < length; ++t) {
            const auto h = hidden[b][t][d].item<double>();
            if (pooling == "mean") pooled += h / static_cast<double>(length);
            if (pooling == "first" && t == 0) pooled = h;
            if (pooling == "last" && t == length - 1) pooled = h;
          }
          sum += pooled * parameters["project.weight"][c][d].item<double>();
        }
        CHECK(std::abs(logits[b][c].item<double>() - sum) < 1e-12);
      }
    CHECK(difference(output->forward(hidden.narrow(0, 1, 1), {}), logits.narrow(0, 1, 1)) < 1e-12);
  }
}

TEST_CASE("a span's rows are its starts and ends, and padding can't be either", "[output]") {
  auto options = small_encoder_only();
  options.output = output_choice("spans");
  auto model = make_model(model_choice("encoder_only", options), with_classes());
  const auto batch = small_batch();  // lengths 7, 8, 5
  Forward run;
  const auto logits_BT2 = model->logits(batch, run);
  const auto rows = rows_of(*model, batch);
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t end = 0; end < 2; ++end)
      for (int64_t t = 0; t < 8; ++t) {
        const auto got = rows[2 * b + end][t].item<float>();
        if (batch.target_mask_BT[b][t].item<bool>())
          CHECK(got == logits_BT2[b][t][end].item<float>());
        else
          CHECK(got == -std::numeric_limits<float>::infinity());
      }
  TokenBatch asked;
  asked.inputs = batch;
  asked.targets_N = torch::tensor({1, 6, 0, 7, 2, 4}, torch::kLong);
  asked.smooth = false;
  Forward again;
  const auto loss = token_loss(*model, asked, 0.1, again);  // smoothing is left out
  CHECK(std::abs(loss.sum.item<float>() - loss.nll_sum.item<float>()) < 1e-6);
  loss.sum.backward();
  for (const auto& item : model->named_parameters()) CHECK(finite(item.value().grad()));
}

TEST_CASE("the gradients of every output are those of differences", "[output]") {
  const DefaultDtype in_double(torch::kFloat64);
  for (const auto& row : output_rows()) {
    INFO(row.name);
    auto model = make_model(row.model, with_classes());
    auto batch = small_batch();
    batch.target_mask_BT = Tensor();
    const auto weight = noise(rows_of(*model, batch).sizes(), "loss");
    const auto loss = [&] { return (rows_of(*model, batch) * weight).sum(); };
    loss().backward();
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      if (item.key().rfind("output", 0) != 0 && item.key().rfind("tokens", 0) != 0) continue;
      INFO(item.key());
      auto parameter = item.value();
      const auto direction = noise(parameter.sizes(), "direction");
      constexpr double step = 1e-6;
      parameter.add_(direction, step);
      const auto up = loss().item<double>();
      parameter.add_(direction, -2 * step);
      const auto down = loss().item<double>();
      parameter.add_(direction, step);
      const auto along = (parameter.grad() * direction).sum().item<double>();
      CHECK(std::abs((up - down) / (2 * step) - along) < 1e-6 * (1 + std::abs(along)));
    }
  }
}

TEST_CASE("a model with an output is copied, saved and pruned with it", "[output]") {
  for (const auto& row : output_rows()) {
    INFO(row.name);
    auto model = make_model(row.model, with_classes());
    const auto batch = small_batch();
    const auto before = rows_of(*model, batch);
    auto copy = std::dynamic_pointer_cast<Model>(model->clone());
    copy->eval();
    CHECK(torch::equal(rows_of(*copy, batch), before));
    const auto saved = named_tensors(*model);
    auto other = make_model(row.model, with_classes());
    {
      torch::NoGradGuard no_grad;
      for (auto& parameter : other->parameters()) parameter.add_(1);
    }
    CHECK(!torch::equal(rows_of(*other, batch), before));
    load_tensors(*other, saved, "saved");
    CHECK(torch::equal(rows_of(*other, batch), before));
    auto kept = model->heads();
    for (auto& [stack, layers] : kept) layers = {{0, 2}, {}};
    Forward masked;
    masked.scale = model->ones();
    for (auto& [stack, scale] : masked.scale) {
      scale.zero_();
      scale[0][0] = scale[0][2] = 1;
    }
    const auto with_mask = model->row_logits(batch, {}, masked);
    copy->keep(kept);
    const auto real = with_mask.isfinite();
    CHECK(difference(rows_of(*copy, batch).masked_select(real), with_mask.masked_select(real)) < 1e-5);
  }
}

TEST_CASE("a model whose output is not over the vocabulary can't generate, and says what can", "[output]") {
  auto options = small_decoder_only();
  options.output = output_choice("tags");
  auto model = make_model(model_choice("decoder_only", options), with_classes());
  Forward run;
  CHECK_THROWS_WITH(model->stepper({}, run),
                    "model.output: a model whose output is \"tags\" can't generate text; expected language_model");
  auto without_classes = small_context();
  without_classes.classes = 0;
  CHECK_THROWS_WITH(make_model(model_choice("decoder_only", options), without_classes),
                    ContainsSubstring("model.output: expected at least one class, got 0"));
}

TEST_CASE("an output's first weights depend on the seed and its name alone", "[output]") {
  auto with_tags = small_encoder_only(), plain = small_encoder_only();
  with_tags.output = output_choice("tags");
  const auto make = [](const EncoderOnlyOptions& options, uint64_t seed) {
    auto model = models().make(model_choice("encoder_only", options), with_classes());
    initialise(*model, seed);
    return model;
  };
  const auto one = make(with_tags, 3), again = make(with_tags, 3), other = make(with_tags, 4),
             language = make(plain, 3);
  CHECK(torch::equal(one->named_parameters()["output.project.weight"],
                     again->named_parameters()["output.project.weight"]));
  CHECK(!torch::equal(one->named_parameters()["output.project.weight"],
                      other->named_parameters()["output.project.weight"]));
  CHECK(torch::equal(one->named_parameters()["tokens.weight"], language->named_parameters()["tokens.weight"]));
}
