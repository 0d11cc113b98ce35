#include "modules/model/frame_ctc.h"

#include <cmath>
#include <functional>
#include <map>

#include "modules/loss/ctc.h"
#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

constexpr int64_t width = 8, frame_numbers = 5, vocabulary = 7;  // symbols 4, 5, 6

FrameCtcOptions small_ctc(const std::string& encoder = "lstm") {
  FrameCtcOptions options;
  options.d_model = width;
  options.dropout = 0;
  options.frame_width = frame_numbers;
  options.max_length = 20;
  options.encoder.choose(encoder);
  if (encoder == "layers") options.encoder.as<LayersReaderOptions>().attention.heads = 4;
  return options;
}

std::shared_ptr<FrameCtc> made(const FrameCtcOptions& options) {
  auto model = std::make_shared<FrameCtc>(options, ModelContext{2, vocabulary, {}});
  fill(*model, 0.4);
  model->eval();
  return model;
}

/// Two texts of 5 and 3 frames; the symbols of the second repeat.
Batch heard() {
  Batch batch;
  batch.source_BS = torch::zeros({2, 5}, torch::kLong);
  batch.source_mask_BS = mask_of({5, 3}, 5);
  batch.side[frames_name] = noise({2, 5, frame_numbers}, "frames");
  batch.target_BT = torch::tensor({{2, 4, 6, 4}, {2, 5, 5, 0}}, torch::kLong);
  batch.target_mask_BT = mask_of({4, 3}, 4);
  return batch;
}

using Text = std::vector<int64_t>;

/// The probability of each text, by all paths of `frames` frames.
std::map<Text, double> by_paths(const Tensor& log_p_SV, int64_t frames) {
  std::map<Text, double> all;
  std::function<void(int64_t, int64_t, Text, double)> go = [&](int64_t s, int64_t before, Text text, double p) {
    if (s == frames) {
      all[text] += p;
      return;
    }
    for (const int64_t id : {0, 4, 5, 6}) {
      auto next = text;
      if (id != 0 && id != before) next.push_back(id);
      go(s + 1, id, next, p * std::exp(log_p_SV[s][id].item<double>()));
    }
  };
  go(0, 0, {}, 1);
  return all;
}

bool begins(const Text& text, const Text& with) {
  return text.size() >= with.size() && std::equal(with.begin(), with.end(), text.begin());
}

}  // namespace

TEST_CASE("what CTC says next is the share of paths whose text goes on so, by all paths", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto log_p = ctc_log_probabilities(noise({2, 5, vocabulary}, "logits"));
  CHECK(difference(log_p.exp().sum(-1), torch::ones({2, 5})) < 1e-12);
  CHECK(log_p.slice(-1, 1, 4).max().item<double>() < -1e29);
  const auto batch = heard();
  const auto next = ctc_next(log_p, batch.source_mask_BS, batch.target_BT);
  for (int64_t b = 0; b < 2; ++b) {
    const auto all = by_paths(log_p[b], b == 0 ? 5 : 3);
    Text prefix;
    for (int64_t t = 0; t < (b == 0 ? 4 : 3); ++t) {
      if (t > 0) prefix.push_back(batch.target_BT[b][t].item<int64_t>());
      double so_far = 0;
      std::map<int64_t, double> with;
      for (const auto& [text, p] : all) {
        if (!begins(text, prefix)) continue;
        so_far += p;
        with[text.size() == prefix.size() ? 3 : text[prefix.size()]] += p;
      }
      for (const int64_t id : {3, 4, 5, 6}) {
        INFO("text " << b << ", after " << t << " symbols, id " << id);
        const auto got = next[b][t][id].item<double>();
        if (with[id] > 0)
          CHECK(got == Approx(std::log(with[id] / so_far)).epsilon(1e-10));
        else
          CHECK(got <= -1e4);
      }
      CHECK(next[b][t].slice(0, 0, 3).exp().sum().item<double>() < 1e-20);
    }
  }
}

TEST_CASE("the loss of CTC is minus the logarithm of the sum over all alignments, symbol by symbol and as a whole",
          "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(small_ctc());
  const auto batch = heard();
  Forward run;
  const auto log_p = model->frame_log_probabilities(model->read(batch, run));
  const auto whole =
      ctc_nll(log_p, batch.source_mask_BS, batch.target_BT.slice(1, 1), torch::tensor({3, 2}, torch::kLong));
  const auto logits = logits_of(*model, batch);
  const std::vector<Text> texts{{4, 6, 4}, {5, 5}};
  for (int64_t b = 0; b < 2; ++b) {
    const auto& text = texts[static_cast<std::size_t>(b)];
    const auto expected = -std::log(by_paths(log_p[b], b == 0 ? 5 : 3)[text]);
    double sum = 0;
    for (std::size_t t = 0; t <= text.size(); ++t)
      sum -= logits[b][static_cast<int64_t>(t)].log_softmax(-1)[t < text.size() ? text[t] : 3].item<double>();
    CHECK(whole[b].item<double>() == Approx(expected).epsilon(1e-10));
    CHECK(sum == Approx(expected).epsilon(1e-10));
  }
  // Of two frames no path writes 5 5.
  const auto short_mask = mask_of({2, 2}, 5);
  const auto can_not = ctc_next(log_p, short_mask, batch.target_BT);
  CHECK(can_not[1][1][5].item<double>() == -1e4);
  CHECK(finite(can_not));
  CHECK(
      ctc_nll(log_p, short_mask, batch.target_BT.slice(1, 1), torch::tensor({3, 2}, torch::kLong))[1].item<double>() ==
      0);
}

TEST_CASE("the gradients of CTC are those of differences, symbol by symbol as of LibTorch's own loss", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  const auto batch = heard();
  for (const std::string encoder : {"lstm", "layers"}) {
    const auto model = made(small_ctc(encoder));
    const auto loss = [&] {
      const auto log_p = logits_of(*model, batch).log_softmax(-1);
      auto sum = torch::zeros({});
      const std::vector<Text> said{{4, 6, 4, 3}, {5, 5, 3}};
      for (int64_t b = 0; b < 2; ++b)
        for (std::size_t t = 0; t < said[static_cast<std::size_t>(b)].size(); ++t)
          sum = sum - log_p[b][static_cast<int64_t>(t)][said[static_cast<std::size_t>(b)][t]];
      return sum;
    };
    loss().backward();
    std::map<std::string, Tensor> gradients;
    for (const auto& item : model->named_parameters()) {
      INFO(item.key());
      REQUIRE(item.value().grad().defined());
      gradients[item.key()] = item.value().grad().clone();
    }
    model->zero_grad();
    Forward run;
    ctc_nll(model->frame_log_probabilities(model->read(batch, run)), batch.source_mask_BS, batch.target_BT.slice(1, 1),
            torch::tensor({3, 2}, torch::kLong))
        .sum()
        .backward();
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      INFO(item.key());
      CHECK(difference(gradients.at(item.key()), item.value().grad()) < 1e-10);
      const auto direction = noise(item.value().sizes(), "direction/" + item.key());
      item.value().add_(direction, 1e-6);
      const auto up = loss().item<double>();
      item.value().add_(direction, -2e-6);
      const auto down = loss().item<double>();
      item.value().add_(direction, 1e-6);
      const auto along = (gradients.at(item.key()) * direction).sum().item<double>();
      CHECK(std::abs((up - down) / 2e-6 - along) < 1e-6 * (1 + std::abs(along)));
    }
  }
}

TEST_CASE("padding and other texts change nothing that CTC says, and steps say what the whole pass says",
          "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string encoder : {"lstm", "layers"}) {
    const auto model = made(small_ctc(encoder));
    const auto batch = heard();
    const auto together = logits_of(*model, batch);
    auto other = batch;
    other.side[frames_name] =
        batch.side.at(frames_name).masked_fill(batch.source_mask_BS.logical_not().unsqueeze(-1), 7);
    CHECK(difference(logits_of(*model, other), together) < 1e-12);
    Batch alone;
    alone.source_BS = batch.source_BS.narrow(0, 1, 1).narrow(1, 0, 3);
    alone.side[frames_name] = batch.side.at(frames_name).narrow(0, 1, 1).narrow(1, 0, 3);
    alone.target_BT = batch.target_BT.narrow(0, 1, 1).narrow(1, 0, 3);
    CHECK(difference(logits_of(*model, alone), together.narrow(0, 1, 1).narrow(1, 0, 3)) < 1e-12);
    Forward run;
    const auto stepper = model->stepper(batch, run);
    CHECK(difference(stepper->step(batch.target_BT.narrow(1, 0, 2), run), together.select(1, 1)) < 1e-12);
    stepper->reorder(torch::tensor({1, 0, 0}, torch::kLong));
    const auto moved = stepper->step(torch::tensor({{5}, {6}, {6}}, torch::kLong), run);
    CHECK(difference(moved, together.select(1, 2).index_select(0, torch::tensor({1, 0, 0}, torch::kLong))) < 1e-12);
    CHECK_THROWS_AS(stepper->step(torch::zeros({3, 30}, torch::kLong), run), ShapeError);
  }
}

TEST_CASE("heads of the layers that CTC reads can be masked and removed", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(small_ctc("layers"));
  const auto batch = heard();
  CHECK(text_of(model->heads()) == "enc.self [0 1 2 3][0 1 2 3]");
  Forward run;
  run.scale = model->ones();
  run.scale.at(Stack::enc_self)[0][1] = 0;
  run.scale.at(Stack::enc_self)[1][3] = 0;
  const auto masked = model->logits(batch, run);
  CHECK(difference(masked, logits_of(*model, batch)) > 1e-5);
  model->keep({{Stack::enc_self, {{0, 2, 3}, {0, 1, 2}}}});
  CHECK(difference(logits_of(*model, batch), masked) < 1e-12);
  CHECK(difference(logits_of(*std::dynamic_pointer_cast<Model>(model->clone()), batch), masked) < 1e-12);
}

TEST_CASE("the work and the parameters of CTC are those of its matrices", "[paper-23]") {
  const auto model = made(small_ctc());
  const int64_t encoder = 2 * 4 * (width / 2) * (frame_numbers + width / 2);
  CHECK(model->flops(9, 6) == 2 * 9 * (encoder + vocabulary * width));
  CHECK(model->parameter_count() == encoder + 4 * width + vocabulary * width + vocabulary);
}
