#include "modules/model/frame_transcriber.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

constexpr int64_t width = 8, frame_numbers = 5, vocabulary = 9;

FrameTranscriberOptions transcriber(const std::vector<std::string>& heads, const std::string& merge, double ctc = 0) {
  FrameTranscriberOptions options;
  options.d_model = width;
  options.dropout = 0;
  options.frame_width = frame_numbers;
  options.max_length = 40;
  options.merge.choose(merge);
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

TEST_CASE("energies of recurrent heads are those of loops over places, numbers, filters and their kernel",
          "[paper-23]") {
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
                if (const auto place = s + j - 3; place >= 0 && place < S)
                  filtered += number(of["filters.weight"], {channel, j}) * number(looked.last_BS, {b, place});
              more += number(of["location.weight"], {a, channel}) * filtered;
            }
          if (type == "coverage") more = number(of["coverage.weight"], {a, 0}) * number(looked.sum_BS, {b, s});
          sum += type == "dot" ? std::tanh(key) * std::tanh(query)
                               : number(of["score.weight"], {0, a}) * std::tanh(key + query + more);
        }
        CHECK(number(got, {b, s}) == Approx(sum).epsilon(1e-10).margin(1e-12));
      }
  }
}

TEST_CASE("LSTMs to either side read each text from its first and from its last frame, by loops over gates",
          "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const int64_t in = 3, U = 4, S = 6;
  const auto lstms = std::make_shared<BiLstm>(in, U);
  auto& both = *lstms;
  fill(both);
  auto of = parameters(both);
  const auto x = noise({3, S, in}, "x");
  const std::vector<int64_t> lengths{6, 2, 5};
  const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
  for (const bool masked : {true, false}) {
    const auto got = both.forward(x, masked ? mask_of(lengths, S) : Tensor());
    for (int64_t b = 0; b < 3; ++b) {
      const auto length = masked ? lengths[static_cast<std::size_t>(b)] : S;
      for (const bool back : {false, true}) {
        const std::string name = back ? "backwards." : "forwards.";
        std::vector<double> h(U, 0), c(U, 0);
        for (int64_t step = 0; step < length; ++step) {
          const auto s = back ? length - 1 - step : step;
          std::vector<double> gates(4 * U);
          for (int64_t g = 0; g < 4 * U; ++g) {
            auto& sum = gates[static_cast<std::size_t>(g)];
            sum = number(of[name + "bias"], {g});
            for (int64_t i = 0; i < in; ++i) sum += number(of[name + "input_weight"], {g, i}) * number(x, {b, s, i});
            for (int64_t u = 0; u < U; ++u)
              sum += number(of[name + "hidden_weight"], {g, u}) * h[static_cast<std::size_t>(u)];
          }
          for (std::size_t u = 0; u < static_cast<std::size_t>(U); ++u) {
            const auto gate = [&](std::size_t which) { return gates[which * static_cast<std::size_t>(U) + u]; };
            c[u] = sigmoid(gate(1)) * c[u] + sigmoid(gate(0)) * std::tanh(gate(2));
            h[u] = sigmoid(gate(3)) * std::tanh(c[u]);
            CHECK(number(got, {b, s, static_cast<int64_t>(u) + (back ? U : 0)}) ==
                  Approx(h[u]).epsilon(1e-10).margin(1e-14));
          }
        }
      }
      CHECK(got[b].slice(0, length).abs().sum().item<double>() == 0);
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
    for (auto& [name, tensor] : to)
      tensor.copy_(name == "decoder.join.weight"            ? torch::eye(width)
                   : name.rfind("decoder.decoder.", 0) == 0 ? from.at("decoder.decoder0." + name.substr(16))
                                                            : from.at(name));
    const auto batch = heard();
    CHECK(difference(logits_of(*apart, batch), logits_of(*together, batch)) < 1e-12);
    to.at("decoder.join.weight").mul_(2);
    CHECK(difference(logits_of(*apart, batch), logits_of(*together, batch)) > 1e-4);
  }
}

namespace {

/// Whatever taps see of dec.cross in one pass, step by step.
struct Seen : Tap {
  std::map<At, std::vector<Tensor>> of;
  std::map<At, std::vector<int64_t>> places;  // the first query of each
  bool wants(At, Site site) const override { return site == Site{Stack::dec_cross, 0}; }
  Tensor see(At at, Site, Tensor value, const AttentionCall* call) override {
    of[at].push_back(value);
    places[at].push_back(call->q_pos[0].item<int64_t>());
    return value;
  }
};

Seen seen_in(Model& model, const Batch& batch) {
  Seen seen;
  Forward run;
  run.taps = {&seen};
  model.logits(batch, run);
  return seen;
}

/// What the encoder makes of a batch.
Tensor memory_of(FrameTranscriber& model, const Batch& batch) {
  Forward run;
  return model.read(batch, run).h_BSD;
}

Tensor scaled(Model& model, const Batch& batch, const Tensor& scale) {
  Forward run;
  run.scale[Stack::dec_cross] = scale;
  return model.logits(batch, run);
}

const std::vector<std::string> all_kinds{"dot", "additive", "location", "coverage"};

}  // namespace

TEST_CASE("the outputs of separate decoders add up, each through its own columns", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(transcriber(all_kinds, "decoder"));
  auto of = parameters(*model);
  const auto q = seen_in(*model, heard()).of.at(At::z).at(0);  // [3,4,6,width]
  auto sum = of["decoder.output.bias"].expand({3, 6, vocabulary}).clone();
  for (int64_t n = 0; n < 4; ++n)
    sum += torch::matmul(q.select(1, n), of["decoder.output.weight"].narrow(1, n * width, width).t());
  CHECK(difference(logits_of(*model, heard()), sum) < 1e-12);
}

TEST_CASE("weights sum to 1 over the real places, what was looked at to the number of steps, and a first look is even",
          "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string merge : {"head", "decoder"}) {
    const auto model = made(transcriber({"coverage", "location"}, merge));
    const auto batch = heard();
    Forward run;
    const auto fresh = model->start(model->read(batch, run), run);
    REQUIRE(fresh.stored.size() ==
            (merge == "head" ? 9 : 11));  // h, 2 keys, 4 of where heads looked, h and c of each LSTM
    const std::vector<double> lengths{9, 5, 7};
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t s = 0; s < 9; ++s) {
        const auto length = lengths[static_cast<std::size_t>(b)];
        CHECK(number(fresh.stored[3], {b, s}) ==
              Approx(static_cast<double>(s) < length ? 1 / length : 0).margin(1e-15));
      }
    auto state = fresh;
    for (int64_t step = 1; step <= 4; ++step) {
      model->decode(batch.target_BT.narrow(1, step, 1), {{}, batch.source_mask_BS}, {}, &state, run);
      for (const std::size_t n : {3, 5}) {
        CHECK(difference(state.stored[n].sum(1), torch::ones({3})) < 1e-12);
        CHECK(difference(state.stored[n + 1].sum(1), torch::full({3}, static_cast<double>(step))) < 1e-12);
        CHECK(state.stored[n].masked_select(batch.source_mask_BS.logical_not()).abs().max().item<double>() == 0);
      }
    }
  }
}

TEST_CASE("taps see where each head of a transcriber looks at each step, what it read, and its share of the sum",
          "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string merge : {"head", "decoder"}) {
    INFO(merge);
    const auto model = made(transcriber(all_kinds, merge));
    const auto batch = heard();
    const auto seen = seen_in(*model, batch);
    const auto h = memory_of(*model, batch);
    CHECK(seen.places.at(At::weights) == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
    CHECK(seen.of.at(At::memory).size() == 1);
    CHECK(difference(seen.of.at(At::memory)[0], h) == 0);
    for (std::size_t t = 0; t < 6; ++t) {
      const auto& weights = seen.of.at(At::weights)[t];
      CHECK(weights.sizes() == at::IntArrayRef{3, 4, 1, 9});
      CHECK(difference(weights, seen.of.at(At::scores)[t].softmax(-1)) < 1e-12);
      CHECK(seen.of.at(At::q)[t].sizes() == at::IntArrayRef{3, 4, 1, width});
      if (merge == "head")
        CHECK(difference(seen.of.at(At::z)[t], torch::matmul(weights.squeeze(2), h).unsqueeze(2)) < 1e-12);
    }
    // A head's own decoder asks with what it said at the step before.
    if (merge == "decoder")
      for (std::size_t t = 1; t < 6; ++t)
        CHECK(difference(seen.of.at(At::q)[t].squeeze(2),
                         seen.of.at(At::z)[0].select(2, static_cast<int64_t>(t) - 1)) == 0);
    CHECK(seen.of.at(At::o).size() == (merge == "head" ? 6 : 1));
    const auto bias = merge == "head" ? torch::zeros({width}) : parameters(*model)["decoder.output.bias"];
    for (std::size_t i = 0; i < seen.of.at(At::o).size(); ++i)
      CHECK(difference(seen.of.at(At::o)[i].sum(1) + bias, seen.of.at(At::y)[i]) < 1e-12);
    // Looking changes no bit.
    Seen looking;
    Forward run;
    run.taps = {&looking};
    CHECK(difference(model->logits(batch, run), logits_of(*model, batch)) == 0);
  }
}

TEST_CASE("a masked head of a transcriber is a removed one, whether heads meet before a decoder or after theirs",
          "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string merge : {"head", "decoder"})
    for (const std::vector<int64_t>& kept : {std::vector<int64_t>{0, 2}, {1}, {0, 1, 2}, {}}) {
      INFO(merge << ", " << kept.size() << " heads left");
      const auto model = made(transcriber(all_kinds, merge));
      const auto batch = heard();
      auto mask = torch::zeros({1, 4});
      for (const auto head : kept) mask[0][head] = 1;
      const auto masked = scaled(*model, batch, mask);
      CHECK(difference(masked, logits_of(*model, batch)) > 1e-4);
      LambdaTap zeros([](At at, Site) { return at == At::z; },
                      [&](At, Site, Tensor z) { return z * mask[0].view({4, 1, 1}); });
      Forward run;
      run.taps = {&zeros};
      CHECK(difference(model->logits(batch, run), masked) < 1e-12);
      auto removed = std::dynamic_pointer_cast<FrameTranscriber>(model->clone());
      removed->keep({{Stack::dec_cross, {kept}}});
      CHECK(text_of(removed->heads()) == text_of({{Stack::dec_cross, {kept}}}));
      CHECK((removed->original_heads() == model->original_heads()));
      CHECK(difference(logits_of(*removed, batch), masked) < 1e-12);
      CHECK(difference(scaled(*removed, batch, mask), masked) <
            1e-12);  // a scale goes by original heads, before and after
      // Its own energy, its LSTM and its columns are gone.
      int64_t energies = 0, lstms = 0;
      for (const auto& item : removed->named_children()["decoder"]->named_children()) {
        energies += item.key().rfind("head", 0) == 0;
        lstms += item.key().rfind("decoder", 0) == 0;
      }
      CHECK(energies == static_cast<int64_t>(kept.size()));
      CHECK(lstms == (merge == "head" ? 1 : static_cast<int64_t>(kept.size())));
      auto of = parameters(*removed);
      CHECK(of[merge == "head" ? "decoder.join.weight" : "decoder.output.weight"].size(1) ==
            width * static_cast<int64_t>(kept.size()));
      // So does one made with these heads and its numbers.
      const auto other = std::dynamic_pointer_cast<FrameTranscriber>(removed->clone());
      CHECK(difference(logits_of(*other, batch), masked) < 1e-12);
      const auto stepper = removed->stepper(batch, run = Forward());
      CHECK(difference(stepper->step(batch.target_BT.narrow(1, 0, 3), run), masked.select(1, 2)) < 1e-12);
      if (kept.size() == 3) {
        removed->keep({{Stack::dec_cross, {{0, 2}}}});  // once more, by original numbers
        CHECK(difference(logits_of(*removed, batch), scaled(*model, batch, torch::tensor({{1., 0., 1., 0.}}))) < 1e-12);
        CHECK_THROWS_AS(removed->keep({{Stack::dec_cross, {{1}}}}), UsageError);
      }
    }
}

TEST_CASE("without heads a transcriber says its bias, or what one decoder says that reads nothing", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto batch = heard();
  const auto apart = made(transcriber(all_kinds, "decoder"));
  apart->keep({{Stack::dec_cross, {{}}}});
  CHECK(difference(logits_of(*apart, batch), parameters(*apart)["decoder.output.bias"].expand({3, 6, vocabulary})) <
        1e-15);
  const auto together = made(transcriber(all_kinds, "head"));
  together->keep({{Stack::dec_cross, {{}}}});
  auto other = batch;
  other.side[frames_name] = noise({3, 9, frame_numbers}, "other frames");
  CHECK(difference(logits_of(*together, batch), logits_of(*together, other)) == 0);
  auto of = parameters(*together);
  auto q = torch::zeros({3, width}), c = q;
  for (int64_t t = 0; t < 6; ++t) {
    const auto x = torch::cat(
        {of["tokens.weight"].index_select(0, batch.target_BT.select(1, t)) * std::sqrt(static_cast<double>(width)),
         torch::zeros({3, width})},
        1);
    std::tie(q, c) =
        torch::lstm_cell(x, {q, c}, of["decoder.decoder.input_weight"], of["decoder.decoder.hidden_weight"],
                         of["decoder.decoder.bias"], torch::zeros({4 * width}));
    const auto said = torch::matmul(q, of["decoder.output.weight"].t()) + of["decoder.output.bias"];
    CHECK(difference(logits_of(*together, batch).select(1, t), said) < 1e-12);
  }
}

TEST_CASE(
    "the gradient of a scale of a transcriber's heads is the sum of z . dL/dz, and a scale for each text is its own",
    "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  for (const std::string merge : {"head", "decoder"}) {
    const auto model = made(transcriber(all_kinds, merge));
    const auto batch = heard();
    Forward run;
    run.scale = model->ones();
    auto& scale = run.scale.at(Stack::dec_cross).requires_grad_();
    CHECK(scale.sizes() == at::IntArrayRef{1, 4});
    std::vector<Tensor> z;
    LambdaTap tap([](At at, Site) { return at == At::z; },
                  [&](At, Site, Tensor value) {
                    value.retain_grad();
                    z.push_back(value);
                    return value;
                  });
    run.taps = {&tap};
    (model->logits(batch, run) * noise({3, 6, vocabulary}, "loss")).sum().backward();
    auto sum = torch::zeros({4});
    for (const auto& one : z) sum += (one * one.grad()).sum(at::IntArrayRef{0, 2, 3}).detach();
    CHECK(difference(sum, scale.grad()[0]) < 1e-10);
    torch::NoGradGuard no_grad;
    const auto each = noise({3, 1, 4}, "scale");
    const auto together = scaled(*model, batch, each);
    for (int64_t b = 0; b < 3; ++b) CHECK(difference(scaled(*model, batch, each[b])[b], together[b]) < 1e-12);
    CHECK_THROWS_AS(scaled(*model, batch, torch::ones({1, 3})), ShapeError);
  }
}

TEST_CASE("where a head is told to look is what later steps take for its last look", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto model = made(transcriber({"location", "coverage"}, "decoder"));
  const auto batch = heard();
  const auto elsewhere = torch::softmax(
      noise({3, 1, 1, 9}, "weights").masked_fill(batch.source_mask_BS.logical_not().unsqueeze(1).unsqueeze(1), -1e9),
      -1);
  Forward run;
  State state = model->start(model->read(batch, run), run);
  LambdaTap tap([](At at, Site) { return at == At::weights; },
                [&](At, Site, Tensor weights) { return elsewhere.expand_as(weights).contiguous(); });
  run.taps = {&tap};
  model->decode(batch.target_BT.narrow(1, 0, 2), {{}, batch.source_mask_BS}, {}, &state, run);
  CHECK(difference(state.stored[3], elsewhere.squeeze()) == 0);
  CHECK(difference(state.stored[6], 2 * elsewhere.squeeze()) < 1e-15);
  // A stepper tells taps which step it is at.
  run.taps = {};
  const auto stepper = model->stepper(batch, run);
  Seen seen;
  run.taps = {&seen};
  stepper->step(batch.target_BT.narrow(1, 0, 2), run);
  stepper->step(batch.target_BT.narrow(1, 2, 1), run);
  CHECK(seen.places.at(At::weights) == std::vector<int64_t>{0, 1, 2});
}

TEST_CASE("an encoder of layers gives a transcriber the heads of enc.self too", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto options = transcriber({"location", "dot"}, "decoder");
  options.encoder.choose("layers");
  options.encoder.as<LayersReaderOptions>().attention.heads = 4;
  const auto model = made(options);
  const auto batch = heard();
  CHECK(text_of(model->heads()) == "enc.self [0 1 2 3][0 1 2 3] dec.cross [0 1]");
  auto scale = model->ones();
  scale[Stack::enc_self][1][2] = 0;
  scale[Stack::dec_cross][0][0] = 0;
  Forward run;
  run.scale = scale;
  const auto masked = model->logits(batch, run);
  CHECK(difference(masked, logits_of(*model, batch)) > 1e-4);
  model->keep({{Stack::enc_self, {{0, 1, 2, 3}, {0, 1, 3}}}, {Stack::dec_cross, {{1}}}});
  CHECK(difference(logits_of(*model, batch), masked) < 1e-12);
  const auto clone = std::dynamic_pointer_cast<Model>(model->clone());
  CHECK(difference(logits_of(*clone, batch), masked) < 1e-12);
  options.encoder.as<LayersReaderOptions>().attention.heads = 3;
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "encoder.attention.heads");
}

TEST_CASE("padding, other texts and later symbols change nothing that a transcriber says", "[paper-23]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (const std::string merge : {"head", "decoder"}) {
    const auto model = made(transcriber({"dot", "additive", "location", "coverage"}, merge));
    const auto batch = heard();
    const auto together = logits_of(*model, batch);
    auto other = batch;
    other.side[frames_name] =
        batch.side.at(frames_name).masked_fill(batch.source_mask_BS.logical_not().unsqueeze(-1), 7);
    CHECK(difference(logits_of(*model, other), together) < 1e-12);
    const std::vector<int64_t> frames{9, 5, 7};
    for (int64_t b = 0; b < 3; ++b) {
      Batch alone;
      alone.source_BS = batch.source_BS.narrow(0, b, 1).narrow(1, 0, frames[static_cast<std::size_t>(b)]);
      alone.side[frames_name] =
          batch.side.at(frames_name).narrow(0, b, 1).narrow(1, 0, frames[static_cast<std::size_t>(b)]);
      alone.target_BT = batch.target_BT.narrow(0, b, 1).narrow(1, 0, 3);
      CHECK(difference(logits_of(*model, alone), together.narrow(0, b, 1).narrow(1, 0, 3)) < 1e-12);
    }
  }
}

TEST_CASE("a transcriber that goes on step by step says what the whole pass says, rows that change places too",
          "[paper-23]") {
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
    const auto model = made(transcriber(all_kinds, merge, 0.5));
    model->train();
    const auto weight = noise({3, 6, vocabulary}, "loss");
    auto batch = heard();
    batch.target_BT = batch.target_BT.clamp_min(4);  // no end within a text, which no path of CTC says
    const auto loss = [&] {
      Forward run;
      auto sum = (model->logits(batch, run) * weight).sum();
      for (const auto& aux : run.aux) sum = sum + aux.sum;
      return sum;
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
  auto logits = torch::matmul(memory_of(*model, batch)[0], of["ctc_output.weight"].t()) + of["ctc_output.bias"];
  logits.narrow(1, 1, 3).fill_(-INFINITY);  // a path says the blank or a symbol
  const auto p = logits.softmax(-1);
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

TEST_CASE("the work and the parameters of a transcriber are those of its matrices", "[paper-23]") {
  const int64_t D = width, F = frame_numbers, V = vocabulary, A = 32, S = 9, T = 6;
  const auto model = made(transcriber({"location", "coverage"}, "decoder"));
  const auto encoder = 2 * (4 * (D / 2) * (F + D / 2)), decoder = 4 * D * (2 * D + D);
  const auto location = 8 * 7 + A * 8, coverage = A;
  const auto products = S * encoder + 2 * S * A * D +
                        T * (2 * (A * D + S * A) + S * location + S * coverage + 2 * S * D + 2 * decoder + 2 * D * V);
  CHECK(model->flops(S, T) == 2 * products);
  CHECK(model->parameter_count() == encoder + 4 * D + 2 * (decoder + 4 * D) + 2 * (A * D + A + A * D + A) + location +
                                        coverage + V * D + 2 * D * V + V);
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
