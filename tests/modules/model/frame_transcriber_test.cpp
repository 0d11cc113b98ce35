#include "modules/model/frame_transcriber.h"

#include <cmath>

#include "src/task/transcription.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

constexpr int64_t width = 8, frame_numbers = 5, vocabulary = 9;

FrameTranscriberOptions transcriber(const std::vector<std::string>& heads, const std::string& merge, double ctc = 0) {
  FrameTranscriberOptions options;
  options.d_model = width;
  options.dropout = 0;
  options.frame_width = frame_numbers;
  options.max_length = 40;
  options.merge = merge;
  options.ctc = ctc;
  options.heads.items.clear();
  for (const auto& type : heads) options.heads.items.emplace_back(energy_catalogue, type);
  return options;
}

std::shared_ptr<FrameTranscriber> made(const FrameTranscriberOptions& options) {
  auto model = std::make_shared<FrameTranscriber>(options, ModelContext{2, vocabulary, {}});
  fill(*model, 0.3);
  model->eval();
  return model;
}

/// Three texts of up to 9 frames and 5 symbols after bos.
Batch heard() {
  Batch batch;
  batch.source_BS = torch::zeros({3, 9}, torch::kLong);
  batch.source_mask_BS = mask_of({9, 5, 7}, 9);
  batch.side[frames_name] = noise({3, 9, frame_numbers}, "frames");
  batch.target_BT = random_ids({3, 6}, vocabulary, "symbols");
  batch.target_mask_BT = mask_of({6, 4, 5}, 6);
  return batch;
}

std::map<std::string, Tensor> parameters(torch::nn::Module& module) {
  std::map<std::string, Tensor> all;
  for (const auto& item : module.named_parameters()) all[item.key()] = item.value();
  return all;
}

double number(const Tensor& x, std::initializer_list<int64_t> index) {
  auto one = x;
  for (const auto i : index) one = one[i];
  return one.item<double>();
}

}  // namespace

TEST_CASE("energies of recurrent heads are those of loops over places, numbers, filters and their kernel", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const int64_t S = 6, A = 32;
  const auto h = noise({2, S, width}, "h"), q = noise({2, width}, "q");
  const Looked looked{noise({2, S}, "last").softmax(-1), noise({2, S}, "sum").abs()};
  for (const std::string type : {"dot", "additive", "location", "coverage"}) {
    INFO(type);
    const auto energy = energies().make(Choice(energy_catalogue, type), {width, width});
    fill(*energy);
    auto of = parameters(*energy);
    const auto got = energy->energy(energy->keys(h), q, looked);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t s = 0; s < S; ++s) {
        double sum = 0;
        for (int64_t a = 0; a < A; ++a) {
          double key = of.count("memory.bias") ? number(of["memory.bias"], {a}) : 0, query = 0, more = 0;
          for (int64_t d = 0; d < width; ++d) {
            key += number(of["memory.weight"], {a, d}) * number(h, {b, s, d});
            query += number(of["query.weight"], {a, d}) * number(q, {b, d});
          }
          if (type == "location")
            for (int64_t channel = 0; channel < 8; ++channel) {
              double filtered = 0;
              for (int64_t j = 0; j < 7; ++j)
                if (const auto place = s + j - 3; place >= 0 && place < S) filtered += number(of["filters.weight"], {channel, j}) * number(looked.last_BS, {b, place});
              more += number(of["location.weight"], {a, channel}) * filtered;
            }
          if (type == "coverage") more = number(of["coverage.weight"], {a, 0}) * number(looked.sum_BS, {b, s});
          sum += type == "dot" ? std::tanh(key) * std::tanh(query) : number(of["score.weight"], {0, a}) * std::tanh(key + query + more);
        }
        CHECK(number(got, {b, s}) == Approx(sum).epsilon(1e-10).margin(1e-12));
      }
  }
}

TEST_CASE("one head with its own decoder is the model of one attention whose W_O is the identity", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string type : {"dot", "additive", "location", "coverage"}) {
    INFO(type);
    const auto apart = made(transcriber({type}, "decoder")), together = made(transcriber({type}, "head"));
    auto from = parameters(*apart), to = parameters(*together);
    for (auto& [name, tensor] : to) tensor.copy_(name == "join.weight" ? torch::eye(width) : from.at(name));
    const auto batch = heard();
    CHECK(difference(logits_of(*apart, batch), logits_of(*together, batch)) < 1e-12);
    to.at("join.weight").mul_(2);
    CHECK(difference(logits_of(*apart, batch), logits_of(*together, batch)) > 1e-4);
  }
}

TEST_CASE("the outputs of separate decoders add up, each through its own columns", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(transcriber({"location", "location", "coverage", "dot"}, "decoder"));
  auto of = parameters(*model);
  Forward run;
  const auto q = model->hidden(heard(), run);
  CHECK(q.size(2) == 4 * width);
  auto sum = of["output.bias"].expand({3, 6, vocabulary}).clone();
  for (int64_t n = 0; n < 4; ++n)
    sum += torch::matmul(q.narrow(2, n * width, width), of["output.weight"].narrow(1, n * width, width).t());
  CHECK(difference(logits_of(*model, heard()), sum) < 1e-12);
}

TEST_CASE("weights sum to 1 over the real places, what was looked at to the number of steps, and a first look is even", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(transcriber({"coverage", "location"}, "decoder"));
  const auto batch = heard();
  const auto memory = model->read(batch);
  auto state = model->start(memory);
  const std::vector<double> lengths{9, 5, 7};
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t s = 0; s < 9; ++s) {
      const auto length = lengths[static_cast<std::size_t>(b)];
      CHECK(number(state.looked[0].last_BS, {b, s}) == Approx(static_cast<double>(s) < length ? 1 / length : 0).margin(1e-15));
    }
  for (int64_t step = 1; step <= 4; ++step) {
    model->step(batch.target_BT.select(1, step), memory, state);
    for (const auto& looked : state.looked) {
      CHECK(difference(looked.last_BS.sum(1), torch::ones({3})) < 1e-12);
      CHECK(difference(looked.sum_BS.sum(1), torch::full({3}, static_cast<double>(step))) < 1e-12);
      CHECK(looked.last_BS.masked_select(batch.source_mask_BS.logical_not()).abs().max().item<double>() == 0);
    }
  }
}

TEST_CASE("padding, other texts and later symbols change nothing that a transcriber says", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string merge : {"head", "decoder"}) {
    const auto model = made(transcriber({"dot", "additive", "location", "coverage"}, merge));
    const auto batch = heard();
    const auto together = logits_of(*model, batch);
    auto other = batch;
    other.side[frames_name] = batch.side.at(frames_name).masked_fill(batch.source_mask_BS.logical_not().unsqueeze(-1), 7);
    CHECK(difference(logits_of(*model, other), together) < 1e-12);
    const std::vector<int64_t> frames{9, 5, 7};
    for (int64_t b = 0; b < 3; ++b) {
      Batch alone;
      alone.source_BS = batch.source_BS.narrow(0, b, 1).narrow(1, 0, frames[static_cast<std::size_t>(b)]);
      alone.side[frames_name] = batch.side.at(frames_name).narrow(0, b, 1).narrow(1, 0, frames[static_cast<std::size_t>(b)]);
      alone.target_BT = batch.target_BT.narrow(0, b, 1).narrow(1, 0, 3);
      CHECK(difference(logits_of(*model, alone), together.narrow(0, b, 1).narrow(1, 0, 3)) < 1e-12);
    }
  }
}

TEST_CASE("a transcriber that goes on step by step says what the whole pass says, rows that change places too", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(transcriber({"location", "coverage"}, "decoder"));
  const auto batch = heard();
  const auto full = logits_of(*model, batch);
  Forward run;
  const auto stepper = model->stepper(batch, run);
  CHECK(difference(stepper->step(batch.target_BT.narrow(1, 0, 2), run), full.select(1, 1)) < 1e-12);
  CHECK(difference(stepper->step(batch.target_BT.narrow(1, 2, 1), run), full.select(1, 2)) < 1e-12);
  const auto places = torch::tensor({2, 0, 0}, torch::kLong);
  stepper->reorder(places);
  auto moved = batch;
  moved.source_BS = batch.source_BS.index_select(0, places);
  moved.source_mask_BS = batch.source_mask_BS.index_select(0, places);
  moved.side[frames_name] = batch.side.at(frames_name).index_select(0, places);
  moved.target_BT = batch.target_BT.index_select(0, places);
  CHECK(difference(stepper->step(moved.target_BT.narrow(1, 3, 1), run), logits_of(*model, moved).select(1, 3)) < 1e-12);
  CHECK_THROWS_AS(stepper->step(batch.target_BT.repeat({1, 7}), run), ShapeError);
}

TEST_CASE("the gradients of a transcriber are those of differences, the CTC loss included", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  for (const std::string merge : {"head", "decoder"}) {
    const auto model = made(transcriber({"dot", "additive", "location", "coverage"}, merge));
    const auto weight = noise({3, 6, vocabulary}, "loss");
    const auto loss = [&] {
      Forward run;
      return (model->logits(heard(), run) * weight).sum();
    };
    loss().backward();
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      INFO(item.key());
      const auto direction = noise(item.value().sizes(), "direction/" + item.key());
      REQUIRE(item.value().grad().defined());
      item.value().add_(direction, 1e-6);
      const auto up = loss().item<double>();
      item.value().add_(direction, -2e-6);
      const auto down = loss().item<double>();
      item.value().add_(direction, 1e-6);
      const auto along = (item.value().grad() * direction).sum().item<double>();
      CHECK(std::abs((up - down) / 2e-6 - along) < 1e-6 * (1 + std::abs(along)));
    }
  }
}

TEST_CASE("the CTC loss is minus the logarithm of the sum over all alignments, by enumeration", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  const auto model = made(transcriber({"location"}, "decoder", 0.7));
  model->train();
  Batch batch;
  batch.side[frames_name] = noise({1, 4, frame_numbers}, "frames");
  batch.source_BS = torch::zeros({1, 4}, torch::kLong);
  batch.target_BT = torch::tensor({{2, 5, 5}}, torch::kLong);  // the same symbol twice: a blank stands between
  Forward run;
  model->hidden(batch, run);
  REQUIRE(run.aux.size() == 1);
  torch::NoGradGuard no_grad;
  auto of = parameters(*model);
  const auto p = (torch::matmul(model->read(batch).h_BSD[0], of["ctc_output.weight"].t()) + of["ctc_output.bias"]).softmax(-1);
  double total = 0;
  for (int64_t path = 0; path < 9 * 9 * 9 * 9; ++path) {
    std::vector<int64_t> said;
    double product = 1;
    int64_t before = -1;
    for (int64_t s = 0, rest = path; s < 4; ++s, rest /= 9) {
      const auto id = rest % 9;
      product *= number(p, {s, id});
      if (id != 0 && id != before) said.push_back(id);
      before = id;
    }
    if (said == std::vector<int64_t>{5, 5}) total += product;
  }
  CHECK(run.aux[0].sum.item<double>() == Approx(0.7 * -std::log(total)).epsilon(1e-5));
  CHECK(run.aux[0].count.item<double>() == 2);
  model->eval();
  Forward quiet;
  model->hidden(batch, quiet);
  CHECK(quiet.aux.empty());
}

TEST_CASE("the distance of two texts is the fewest edits, by trying all", "[paper-23]") {
  const std::function<int64_t(std::vector<int64_t>, std::vector<int64_t>)> slow = [&](std::vector<int64_t> a, std::vector<int64_t> b) -> int64_t {
    if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
    const std::vector<int64_t> a_rest(a.begin() + 1, a.end()), b_rest(b.begin() + 1, b.end());
    return std::min({slow(a_rest, b_rest) + (a[0] != b[0]), slow(a_rest, b) + 1, slow(a, b_rest) + 1});
  };
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> a(random.below(6)), b(random.below(6));
    for (auto* list : {&a, &b})
      for (auto& one : *list) one = static_cast<int64_t>(random.below(3));
    CHECK(edit_distance(a, b) == slow(a, b));
  }
  CHECK(edit_distance({1, 2, 3}, {1, 3}) == 1);
  CHECK(edit_distance({}, {4, 4}) == 2);
}

TEST_CASE("the token error rate is the edits of greedy texts over the symbols said, text by text", "[paper-23]") {
  const auto task = make_task(R"({"type": "transcription", "data": {"type": "phones", "phones": 5, "width": 5, "symbols": {"min": 2, "max": 4},
                                  "frames": {"min": 1, "max": 3}, "train": 20, "valid": 12, "test": 12}})");
  const auto& data = dynamic_cast<const Transcription&>(*task).data();
  auto model = std::make_shared<FrameTranscriber>(transcriber({"location", "coverage"}, "decoder"), task->context());
  fill(*model, 0.8);
  EvaluateOptions options;
  options.split = "test";
  options.metrics = {"token_error_rate", "loss"};
  const auto measured = task->evaluate(*model, options, {}).metrics;
  model->eval();
  torch::NoGradGuard no_grad;
  double edits = 0, symbols = 0, nats = 0, asked = 0;
  for (int64_t i = 0; i < 12; ++i) {
    auto batch = task->batch("test", {i}, torch::kCPU);
    const auto log_p = logits_of(*model, batch.inputs)[0].log_softmax(-1);
    for (int64_t t = 0; t < batch.tokens; ++t, ++asked) nats -= log_p[t][batch.targets_N[t].item<int64_t>()].item<double>();
    // The whole pass over what was written so far, again and again.
    std::vector<int64_t> ids{2}, said;
    while (said.size() < 8) {
      batch.inputs.target_BT = torch::tensor(ids, torch::kLong).unsqueeze(0);
      const auto best = logits_of(*model, batch.inputs)[0][-1].slice(0, 3).argmax().item<int64_t>() + 3;
      if (best == 3) break;
      ids.push_back(best);
      said.push_back(best - 4);
    }
    const auto& reference = data.parts.at("test")[static_cast<std::size_t>(i)].symbols;
    edits += static_cast<double>(edit_distance(said, reference));
    symbols += static_cast<double>(reference.size());
  }
  CHECK(measured.at("token_error_rate") == Approx(edits / symbols));
  CHECK(measured.at("loss") == Approx(nats / asked).epsilon(1e-5));
}

TEST_CASE("the work and the parameters of a transcriber are those of its matrices", "[paper-23]") {
  const int64_t D = width, F = frame_numbers, V = vocabulary, A = 32, S = 9, T = 6;
  const auto model = made(transcriber({"location", "coverage"}, "decoder"));
  const auto encoder = 2 * (4 * (D / 2) * (F + D / 2)), decoder = 4 * D * (2 * D + D);
  const auto location = 8 * 7 + A * 8, coverage = A;
  const auto products = S * encoder + 2 * S * A * D + T * (2 * (A * D + S * A) + S * location + S * coverage + 2 * S * D + 2 * decoder + 2 * D * V);
  CHECK(model->flops(S, T) == 2 * products);
  CHECK(model->parameter_count() == encoder + 4 * D + 2 * (decoder + 4 * D) + 2 * (A * D + A + A * D + A) + location + coverage + V * D + 2 * D * V + V);
}

TEST_CASE("a transcriber that can't be is refused", "[paper-23]") {
  const auto refused = [](FrameTranscriberOptions options) {
    Problems problems;
    options.rules(problems);
    return problems.found.size();
  };
  CHECK(refused(transcriber({"dot"}, "head")) == 0);
  CHECK(refused(transcriber({}, "head")) == 1);
  auto odd = transcriber({"dot"}, "head");
  odd.d_model = 7;
  CHECK(refused(odd) == 1);
  LocationEnergyOptions even;
  even.kernel = 4;
  Problems problems;
  even.rules(problems);
  CHECK(problems.found.size() == 1);
}
