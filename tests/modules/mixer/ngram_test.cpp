// 2207.13354 against a grouped convolution of LibTorch, loops in double precision, and the digest's counts.
#include "modules/mixer/ngram.h"

#include "modules/attention/project/standard.h"
#include "modules/base/error.h"
#include "modules/layer/segments.h"
#include "src/heads/score/confidence.h"
#include "src/measure/attention.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

NgramOptions options_of(int64_t n, int64_t heads = 4) {
  NgramOptions options;
  options.n = n;
  options.heads = heads;
  return options;
}

std::shared_ptr<Ngram> ngram(const NgramOptions& options, bool causal, int64_t width = small_width,
                             const std::optional<std::vector<int64_t>>& kept = std::nullopt) {
  auto made = std::make_shared<Ngram>(options, width, causal, kept);
  fill(*made);
  made->eval();
  return made;
}

Visibility seeing(bool causal_one) { return causal_one ? causal() : Visibility{}; }

Tensor forward(Ngram& mixer, const Tensor& x, const Visibility& see, State* state = nullptr) {
  Forward run;
  auto call = call_of(x, run, see);
  call.state = state;
  return mixer.forward(call);
}

/// The definition, number by number; `frame(b, t, s)`: whether token t may read frame s.
Tensor by_loops(const Ngram& mixer, const NgramOptions& options, bool causal_one, const Tensor& x,
                const std::function<bool(int64_t b, int64_t t, int64_t s)>& may_read) {
  const auto parameters = mixer.named_parameters();
  const auto W = parameters["weight"], b_HK = parameters["bias"], O = parameters["mix.weight"],
             c = parameters["mix.bias"];
  const auto B = x.size(0), T = x.size(1), D = x.size(2), H = options.heads, K = D / H;
  const auto after = causal_one ? 0 : options.n - 1;
  auto z = torch::zeros({B, T, D});
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t k = 0; k < K; ++k) {
          double sum = b_HK[h][k].item<double>();
          int64_t place = 0;
          for (auto s = t - options.n + 1; s <= t + after; ++s)
            for (int64_t i = 0; i < K; ++i, ++place)
              if (s >= 0 && s < T && may_read(b, t, s))
                sum += W[h][k][place].item<double>() * x[b][s][h * K + i].item<double>();
          z[b][t][h * K + k] = options.activation == "relu" ? std::max(sum, 0.0) : sum;
        }
  return torch::matmul(z, O.t()) + c;
}

const auto always = [](int64_t, int64_t, int64_t) { return true; };

}  // namespace

TEST_CASE("an n-gram is a grouped convolution over time, and each of its numbers a sum over the frames near a token",
          "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 7, small_width}, "x");
  for (const bool causal_one : {true, false})
    for (const std::string activation : {"none", "relu"}) {
      auto options = options_of(3);
      options.activation = activation;
      const auto mixer = ngram(options, causal_one);
      const auto y = forward(*mixer, x, seeing(causal_one));
      CHECK(difference(y, by_loops(*mixer, options, causal_one, x, always)) < 1e-12);
      const auto frames = causal_one ? 3 : 5;
      const auto parameters = mixer->named_parameters();
      const auto kernel = parameters["weight"].view({4, 2, frames, 2}).permute({0, 1, 3, 2}).reshape({8, 2, frames});
      auto z = torch::conv1d(torch::constant_pad_nd(x.transpose(1, 2), {2, causal_one ? 0 : 2}), kernel,
                             parameters["bias"].flatten(), 1, at::IntArrayRef{0}, 1, 4);
      if (activation == "relu") z = z.relu();
      CHECK(difference(y, torch::matmul(z.transpose(1, 2), parameters["mix.weight"].t()) + parameters["mix.bias"]) <
            1e-12);
    }
}

TEST_CASE("frames of padding are zeros, whichever side they are read from", "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({3, 6, small_width}, "x");
  const std::vector<int64_t> lengths{6, 3, 5};
  auto see = seeing(false);
  see.key_mask_BS = mask_of(lengths, 6);
  const auto options = options_of(3);
  const auto mixer = ngram(options, false);
  const auto y = forward(*mixer, x, see);
  CHECK(difference(y, by_loops(*mixer, options, false, x,
                               [&](int64_t b, int64_t, int64_t s) { return s < lengths[b]; })) < 1e-12);
  CHECK(difference(y[1].narrow(0, 0, 3), forward(*mixer, x.narrow(0, 1, 1).narrow(1, 0, 3), seeing(false))[0]) < 1e-12);
}

TEST_CASE(
    "a causal n-gram says nothing of later frames nor of those N back, bit for bit, and something of each between",
    "[paper-32]") {
  const auto x = noise({1, 9, small_width}, "x");
  const auto mixer = ngram(options_of(4), true);
  const auto y = forward(*mixer, x, causal());
  for (int64_t s = 0; s < 9; ++s) {
    auto other = x.clone();
    other[0][s] += 1;
    const auto changed = forward(*mixer, other, causal());
    for (int64_t t = 0; t < 9; ++t) {
      INFO("frame " << s << ", token " << t);
      CHECK(torch::equal(changed[0][t], y[0][t]) == (s > t || s <= t - 4));
    }
  }
}

TEST_CASE("an n-gram layer has N d^2 / H + d^2 parameters, and 2N - 1 frames a head where it sees both sides",
          "[paper-32]") {
  auto options = options_of(5, 8);
  const auto count = [&](bool causal_one) {
    int64_t all = 0;
    const Ngram mixer(options, 512, causal_one);
    for (const auto& parameter : mixer.parameters()) all += parameter.numel();
    CHECK(mixer.flops(1, 1, causal_one) == 2 * (all - (options.bias ? 1024 : 0)));
    CHECK(mixer.flops(7, 7, causal_one) == 7 * mixer.flops(1, 1, causal_one));
    CHECK(mixer.cache_numbers() == 0);
    return all;
  };
  CHECK(count(true) == 425984 + 1024);
  CHECK(count(false) == 557056 + 1024);
  options.bias = false;
  CHECK(count(true) == 425984);
  CHECK(count(false) == 557056);
  AttentionOptions attention;
  attention.project.as<StandardProjectOptions>().bias = false;
  attention.mix.as<ConcatenateOptions>().bias = false;
  int64_t of_attention = 0;
  for (const auto& parameter : Attention(attention, 512, 512, false).parameters()) of_attention += parameter.numel();
  CHECK(of_attention == 1048576);
}

TEST_CASE(
    "a cache of N - 1 frames gives what the full pass gives, in steps and chunks of any length, heads removed or not",
    "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({3, 9, small_width}, "x");
  for (const int64_t n : {1, 2, 4, 12})
    for (const bool removed : {false, true}) {
      const auto mixer = ngram(options_of(n), true);
      if (removed) mixer->keep({1, 3});
      const auto full = forward(*mixer, x, causal());
      for (const std::vector<int64_t>& chunks :
           {std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1}, {9}, {2, 7}, {5, 1, 3}}) {
        State state;
        int64_t read = 0;
        for (const auto length : chunks) {
          CHECK(difference(forward(*mixer, x.narrow(1, read, length), causal(), &state), full.narrow(1, read, length)) <
                1e-12);
          read += length;
          if (n > 1) CHECK(shape_text(state.stored.at(0)) == shape_text(torch::empty({3, removed ? 2 : 4, n - 1, 2})));
        }
      }
      State state;
      forward(*mixer, x.narrow(1, 0, 6), causal(), &state);
      const auto rows = torch::tensor({2, 0, 0});
      state.reorder(rows);
      CHECK(difference(forward(*mixer, x.index_select(0, rows).narrow(1, 6, 1), causal(), &state),
                       full.index_select(0, rows).narrow(1, 6, 1)) < 1e-12);
    }
}

TEST_CASE("a head that is left reads the chunk of x that its number says, and no other chunk is read", "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 6, small_width}, "x");
  const auto whole = ngram(options_of(3), true);
  Forward masked;
  masked.scale[Stack::dec_self] = torch::tensor({{0.0, 1.0, 0.0, 1.0}});
  const auto expected = whole->forward(call_of(x, masked, causal()));
  whole->keep({1, 3});
  CHECK(whole->heads() == std::vector<int64_t>{1, 3});
  CHECK(difference(forward(*whole, x, causal()), expected) < 1e-12);
  auto other = x.clone();
  other.slice(-1, 0, 2) += 1;  // of head 0
  other.slice(-1, 4, 6) += 1;  // and 2
  CHECK(torch::equal(forward(*whole, other, causal()), forward(*whole, x, causal())));
  const auto made = ngram(options_of(3), true, small_width, std::vector<int64_t>{1, 3});
  copy_tensors(*whole, *made);
  CHECK(torch::equal(forward(*made, x, causal()), forward(*whole, x, causal())));
}

TEST_CASE("an n-gram that reads by segments sees no frame before its segment's memory, whole, in segments and in steps",
          "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 10, small_width}, "x");
  const auto options = options_of(5);
  const auto mixer = ngram(options, true);
  for (const int64_t memory : {0, 2, 6}) {
    SegmentOptions segments;
    segments.length = 3;
    segments.memory = memory;
    const auto expected =
        by_loops(*mixer, options, true, x, [&](int64_t, int64_t t, int64_t s) { return s >= t / 3 * 3 - memory; });
    Forward run;
    const auto call = call_of(x, run, causal());
    CHECK(difference(attend_in_segments(*mixer, segments, call), expected) < 1e-12);
    LambdaTap looks([](At at, Site) { return at == At::z; }, [](At, Site, Tensor z) { return z; });
    run.taps = {&looks};
    CHECK(difference(attend_in_segments(*mixer, segments, call), expected) < 1e-12);  // one call that hides frames
    run.taps.clear();
    State state;
    int64_t read = 0;
    for (const int64_t length : {1, 1, 4, 2, 1, 1}) {
      auto part = call_of(x.narrow(1, read, length), run, causal());
      part.q_pos = part.k_pos = torch::arange(read, read + length);
      part.state = &state;
      CHECK(difference(attend_in_segments(*mixer, segments, part), expected.narrow(1, read, length)) < 1e-12);
      read += length;
    }
  }
}

TEST_CASE("heads that don't divide the width, and a call of the other kind, are told", "[paper-32]") {
  CHECK_THROWS_AS(Ngram(options_of(3, 3), small_width, true), ShapeError);
  const auto mixer = ngram(options_of(3), true);
  CHECK_THROWS_AS(forward(*mixer, noise({1, 4, 6}, "x"), causal()), ShapeError);
  CHECK_THROWS_AS(forward(*mixer, noise({1, 4, small_width}, "x"), seeing(false)), std::logic_error);
  auto options = small_decoder_only();
  options.decoder.mixer.choose("ngram");
  options.decoder.mixer.as<NgramOptions>().heads = 3;
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found.front().field == "decoder.mixer.heads");
  CHECK(problems.found.front().message == "expected a divisor of d_model (8), got 3");
}

TEST_CASE(
    "where one layer is an n-gram, attention is shown of the others alone, and a score by weights says what is missing",
    "[paper-32]") {
  const auto task = make_task(R"({"type": "generated", "train": 50, "valid": 20, "test": 20,
      "exercise": {"type": "offsets", "vocabulary": 4, "offsets": [1], "length": {"min": 6, "max": 6}}})");
  auto options = small_decoder_only();
  options.output.choose("tags");
  LayerOverride first;
  first.layers = {0};
  first.mixer.choose("ngram");
  first.mixer.as<NgramOptions>().heads = 2;
  first.attention = options.decoder.attention;
  first.feed_forward = options.decoder.feed_forward;
  options.decoder.per_layer = {first};
  const auto model = std::make_shared<DecoderOnly>(options, task->context());
  fill(*model);
  const auto shown = AttentionMeasure(AttentionMeasureOptions{}).measure(*model, *task, 1);
  CHECK(shown["heads"].size() == 4);
  CHECK(shown["heads"].contains("dec.self.1.0"));
  CHECK_THROWS_AS(ConfidenceScorer(ConfidenceOptions{}).score(*model, *task, 1), UsageError);
}
