// Heads of both kinds of 2207.13354 in one layer, against one matrix over outputs that are computed apart.
#include "modules/mixer/ngram_and_attention.h"

#include <cmath>

#include "modules/attention/gate/windows.h"
#include "modules/attention/project/standard.h"
#include "modules/base/error.h"
#include "modules/layer/segments.h"
#include "modules/mixer/attention_in.h"
#include "src/heads/score/confidence.h"
#include "src/measure/attention.h"
#include "src/measure/windows.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/parameters.h"
#include "tests/support/taps.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

constexpr int64_t K = small_width / small_heads;

NgramAndAttentionOptions options_of(int64_t heads, int64_t n = 3) {
  NgramAndAttentionOptions options;
  options.heads = heads;
  options.n = n;
  return options;
}

std::shared_ptr<NgramAndAttention> both(const NgramAndAttentionOptions& options, bool causal_one,
                                        const AttentionOptions& attention = small_attention(),
                                        const std::optional<std::vector<int64_t>>& kept = std::nullopt) {
  auto made = std::make_shared<NgramAndAttention>(options, attention, small_width, causal_one, kept);
  fill(*made);
  made->eval();
  return made;
}

AttentionCall calls(const Tensor& x, Forward& run, const Visibility& see, State* state = nullptr) {
  auto call = call_of(x, run, see);
  call.state = state;
  return call;
}

Tensor forward(Mixer& mixer, const Tensor& x, const Visibility& see, State* state = nullptr) {
  Forward run;
  return mixer.forward(calls(x, run, see, state));
}

/// Grouped keys that turn, a window for each head; those of n-gram heads count for nothing.
AttentionOptions busy() {
  auto attention = small_attention();
  attention.project.choose("grouped");
  attention.project.as<GroupedProjectOptions>().groups = 2;
  attention.position.choose("rope");
  attention.gates.items.emplace_back(gate_catalogue, "windows");
  attention.gates.items.back().as<WindowsOptions>().windows = {3, 0, 4, 1};
  return attention;
}

/// A small decoder whose layers have two heads of each kind.
DecoderOnlyOptions decoder(const AttentionOptions& attention = small_attention()) {
  auto options = small_decoder_only(attention);
  options.decoder.mixer.choose("ngram_and_attention");
  options.decoder.mixer.as<NgramAndAttentionOptions>().heads = 2;
  return options;
}

std::string problems_of(const DecoderOnlyOptions& options) {
  Problems problems;
  options.rules(problems);
  std::string text;
  for (const auto& problem : problems.found) text += problem.field + ": " + problem.message + "\n";
  return text;
}

}  // namespace

TEST_CASE("n-gram heads and attention heads are one concatenation under one matrix", "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  constexpr int64_t B = 2, T = 7, N = 3;
  const auto x = noise({B, T, small_width}, "x");
  const auto there = mask_of({7, 5}, T);
  for (const bool causal_one : {true, false})
    for (const int64_t M : {1, 2, 3}) {
      INFO(M << " n-gram heads" << (causal_one ? ", causal" : ""));
      const auto mixer = both(options_of(M, N), causal_one);
      const auto of_ngram = small_heads - M;  // number of the first
      const auto p = mixer->named_parameters();
      // Queries, keys and values of the attention's heads.
      const auto width = of_ngram * K;
      const auto rows = torch::matmul(x, p["attention.project.weight"].t()) + p["attention.project.bias"];
      const auto part = [&](int64_t i) {
        return rows.narrow(2, i * width, width).view({B, T, of_ngram, K}).transpose(1, 2);
      };
      auto see = there.unsqueeze(1).expand({B, T, T});
      if (causal_one) see = torch::ones({T, T}, torch::kBool).tril().expand({B, T, T});
      const auto scores = torch::matmul(part(0), part(1).transpose(2, 3)) / std::sqrt(static_cast<double>(K));
      const auto weights = scores.masked_fill(see.logical_not().unsqueeze(1), -INFINITY).softmax(-1);
      std::vector<Tensor> z{torch::matmul(weights, part(2)).transpose(1, 2).flatten(2)};
      // Windows of the other heads' chunks.
      const auto after = causal_one ? 0 : N - 1;
      const auto zeroed = causal_one ? x : x * there.unsqueeze(-1);
      const auto padded = torch::constant_pad_nd(zeroed, {0, 0, N - 1, after});
      for (int64_t m = 0; m < M; ++m) {
        const auto chunk = padded.narrow(2, (of_ngram + m) * K, K);
        auto sum = p["ngram.bias"][m].expand({B, T, K});
        for (int64_t j = 0; j < N + after; ++j)
          sum = sum + torch::matmul(chunk.narrow(1, j, T), p["ngram.weight"][m].narrow(1, j * K, K).t());
        z.push_back(sum);
      }
      const auto W = torch::cat({p["attention.mix.weight"], p["ngram.mix.weight"]}, 1);
      const auto expected = torch::matmul(torch::cat(z, -1), W.t()) + p["attention.mix.bias"];
      auto call_sees = causal_one ? causal() : Visibility{};
      if (!causal_one) call_sees.key_mask_BS = there;
      CHECK(difference(forward(*mixer, x, call_sees), expected) < 1e-12);
      CHECK(!p.contains("ngram.mix.bias"));
    }
}

TEST_CASE("with all heads n-gram a layer is an n-gram, with none it is the attention", "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 6, small_width}, "x");
  torch::NoGradGuard no_grad;
  const auto all = both(options_of(small_heads), true);
  NgramOptions of_ngram;
  of_ngram.n = 3;
  of_ngram.heads = small_heads;
  Ngram ngram(of_ngram, small_width, true);
  ngram.eval();
  auto to = ngram.named_parameters();
  const auto from = all->named_parameters();
  for (auto& item : to)
    item.value().copy_(from[item.key() == "mix.bias" ? "attention.mix.bias" : "ngram." + item.key()]);
  CHECK(difference(forward(*all, x, causal()), forward(ngram, x, causal())) < 1e-14);
  CHECK(numbers_of(*all) == numbers_of(ngram));

  const auto none = both(options_of(0), true, busy());
  CHECK(torch::equal(forward(*none, x, causal()), forward(const_cast<Attention&>(none->of_attention()), x, causal())));
  CHECK(numbers_of(*none) == numbers_of(*make_attention(busy(), small_width)));
  CHECK(none->of_attention().heads() == std::vector<int64_t>{0, 1, 2, 3});
}

TEST_CASE("an n-gram head has N d^2 / H^2 + d^2 / H parameters where an attention head has 4 d^2 / H", "[paper-32]") {
  AttentionOptions attention;
  attention.project.as<StandardProjectOptions>().bias = false;
  attention.mix.as<ConcatenateOptions>().bias = false;
  for (const bool causal_one : {true, false})
    for (const int64_t M : {0, 1, 4, 8}) {
      auto options = options_of(M, 5);
      options.bias = false;
      const NgramAndAttention mixer(options, attention, 512, causal_one);
      const int64_t frames = causal_one ? 5 : 9, d = 512, H = 8;
      CHECK(numbers_of(mixer) == M * (frames * d * d / (H * H) + d * d / H) + (H - M) * 4 * d * d / H);
      if (M == 8) CHECK(numbers_of(mixer) == (causal_one ? 425984 : 557056));  // the digest's figures, and of attention
      if (M == 0) CHECK(numbers_of(mixer) == 1048576);
      CHECK(mixer.cache_numbers() == (H - M) * 2 * 64);
      // Beside its matrices, each attention head compares and sums 64 numbers over the pairs that are seen.
      const int64_t T = 7, pairs = causal_one ? T * (T + 1) / 2 : T * T;
      CHECK(mixer.flops(T, T, causal_one) == 2 * T * numbers_of(mixer) + (H - M) * 2 * 2 * 64 * pairs);
    }
}

TEST_CASE("a masked head of either kind equals a removed one, and heads keep their numbers", "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({2, 6, small_width}, "x");
  for (const std::vector<int64_t>& kept :
       {std::vector<int64_t>{1, 3}, {0, 1}, {2, 3}, {3}, {0, 2, 3}, std::vector<int64_t>{}}) {
    const auto mixer = both(options_of(2), true, busy());
    Forward masked;
    auto scale = torch::zeros({1, small_heads});
    for (const auto head : kept) scale[0][head] = 1;
    masked.scale[Stack::dec_self] = scale;
    const auto expected = mixer->forward(call_of(x, masked, causal()));
    CHECK_THROWS_AS(mixer->keep({4}), ShapeError);
    mixer->keep(kept);
    CHECK(mixer->heads() == kept);
    CHECK(mixer->original_heads() == small_heads);
    CHECK(difference(forward(*mixer, x, causal()), expected) < 1e-12);
    CHECK(difference(mixer->forward(call_of(x, masked, causal())), expected) < 1e-12);
    const auto made = both(options_of(2), true, busy(), kept);
    copy_tensors(*mixer, *made);
    CHECK(torch::equal(forward(*made, x, causal()), forward(*mixer, x, causal())));
    // The scale of one head reaches that head alone.
    for (std::size_t i = 0; i < kept.size(); ++i) {
      Forward looks;
      looks.scale[Stack::dec_self] = torch::ones({1, small_heads});
      looks.scale[Stack::dec_self][0][kept[i]] = 3;
      Seen o(At::o);
      looks.taps = {&o};
      const auto scaled = mixer->forward(call_of(x, looks, causal()));
      const auto more = o.value().select(1, static_cast<int64_t>(i)) * (2.0 / 3);
      CHECK(difference(scaled - more, forward(*mixer, x, causal())) < 1e-12);
    }
  }
}

TEST_CASE("taps see outputs of both kinds in one list and may change them; weights are the attention heads' alone",
          "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({2, 6, small_width}, "x");
  for (const std::vector<int64_t>& kept : {std::vector<int64_t>{0, 1, 2, 3}, {1, 3}, {2, 3}, {0, 1}}) {
    const auto mixer = both(options_of(2), true, small_attention(), kept);
    const auto H = static_cast<int64_t>(kept.size());
    const auto plain = forward(*mixer, x, causal());
    std::map<At, Tensor> seen;
    std::vector<At> order;
    LambdaTap all([](At, Site) { return true; },
                  [&](At at, Site, Tensor value) {
                    order.push_back(at);
                    return seen[at] = value;
                  });
    Forward run;
    run.taps = {&all};
    CHECK(difference(mixer->forward(call_of(x, run, causal())), plain) < 1e-14);
    REQUIRE(run.taps == std::vector<Tap*>{&all});
    CHECK(order.front() == At::x);
    CHECK(order.back() == At::y);
    for (const auto at : {At::x, At::z, At::o, At::y}) CHECK(std::count(order.begin(), order.end(), at) == 1);
    CHECK(shape_text(seen[At::z]) == shape_text(torch::empty({2, H, 6, K})));
    const auto p = mixer->named_parameters();
    CHECK(difference(seen[At::o].sum(1) + p["attention.mix.bias"], plain) < 1e-12);
    const auto W = torch::cat({p["attention.mix.weight"], p["ngram.mix.weight"]}, 1);
    for (int64_t h = 0; h < H; ++h)
      CHECK(difference(seen[At::o].select(1, h), torch::matmul(seen[At::z].select(1, h), W.narrow(1, h * K, K).t())) <
            1e-12);
    const auto weighing = std::count_if(kept.begin(), kept.end(), [](int64_t head) { return head < 2; });
    CHECK((seen.count(At::weights) ? seen[At::weights].size(1) : 0) == weighing);

    const auto o = seen[At::o], change_z = noise(seen[At::z].sizes(), "z"), change_o = noise(o.sizes(), "o");
    const auto with_W = torch::matmul(change_z.transpose(1, 2).flatten(2), W.t());
    LambdaTap changes([](At at, Site) { return at == At::z || at == At::o; },
                      [&](At at, Site, Tensor value) { return value + (at == At::z ? change_z : change_o); });
    run.taps = {&changes};
    CHECK(difference(mixer->forward(call_of(x, run, causal())), plain + with_W + change_o.sum(1)) < 1e-12);
  }
}

TEST_CASE(
    "caches of both kinds give what the full pass gives, in steps and chunks, heads of either kind removed or not",
    "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({3, 9, small_width}, "x");
  for (const int64_t n : {1, 2, 4, 12})
    for (const std::vector<int64_t>& kept : {std::vector<int64_t>{0, 1, 2, 3}, {1, 2}, {0, 1}, {3}}) {
      const auto mixer = both(options_of(2, n), true, busy(), kept);
      const auto call = [&](int64_t from, int64_t length, State& state, const Tensor& of) {
        Forward run;
        auto one = calls(of.narrow(1, from, length), run, causal(), &state);
        one.q_pos = one.k_pos = torch::arange(from, from + length);
        return mixer->forward(one);
      };
      const auto full = forward(*mixer, x, causal());
      for (const std::vector<int64_t>& chunks : {std::vector<int64_t>(9, 1), {9}, {2, 7}, {5, 1, 3}}) {
        State state;
        int64_t read = 0;
        for (const auto length : chunks) {
          CHECK(difference(call(read, length, state, x), full.narrow(1, read, length)) < 1e-12);
          read += length;
        }
        if (kept.front() < 2) CHECK(state.length() == 9);
      }
      State state;
      call(0, 6, state, x);
      const auto rows = torch::tensor({2, 0, 0});
      state.reorder(rows);
      CHECK(difference(call(6, 1, state, x.index_select(0, rows)), full.index_select(0, rows).narrow(1, 6, 1)) < 1e-12);
    }
}

TEST_CASE("both kinds of heads read by segments alike: whole, in segments and in steps", "[paper-32]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({2, 10, small_width}, "x");
  const auto mixer = both(options_of(2, 5), true);
  for (const int64_t memory : {0, 2, 6}) {
    SegmentOptions segments;
    segments.length = 3;
    segments.memory = memory;
    auto see = causal();
    const auto place = torch::arange(10);
    see.allowed_BTS = place.unsqueeze(0).ge((torch::div(place, 3, "floor") * 3 - memory).unsqueeze(1));
    const auto expected = forward(*mixer, x, see);
    Forward run;
    const auto call = call_of(x, run, causal());
    CHECK(difference(attend_in_segments(*mixer, segments, call), expected) < 1e-12);
    LambdaTap looks([](At at, Site) { return at == At::z; }, [](At, Site, Tensor z) { return z; });
    run.taps = {&looks};
    CHECK(difference(attend_in_segments(*mixer, segments, call), expected) < 1e-12);
    run.taps.clear();
    State state;
    int64_t read = 0;
    for (const int64_t length : {1, 1, 4, 2, 1, 1}) {
      auto part = calls(x.narrow(1, read, length), run, causal(), &state);
      part.q_pos = part.k_pos = torch::arange(read, read + length);
      CHECK(difference(attend_in_segments(*mixer, segments, part), expected.narrow(1, read, length)) < 1e-12);
      read += length;
    }
  }
}

TEST_CASE("a head that attends sees far, an n-gram head its neighbours alone", "[paper-32]") {
  torch::NoGradGuard no_grad;
  const auto x = noise({1, 9, small_width}, "x");
  const auto mixer = both(options_of(2, 3), true);
  const auto outputs = [&](const Tensor& of) {
    Seen z(At::z);
    Forward run;
    run.taps = {&z};
    mixer->forward(call_of(of, run, causal()));
    return z.value();
  };
  const auto before = outputs(x);
  for (int64_t s = 0; s < 9; ++s) {
    auto other = x.clone();
    other[0][s] += 1;
    const auto after = outputs(other);
    for (int64_t t = 0; t < 9; ++t)
      for (int64_t h = 0; h < small_heads; ++h) {
        INFO("frame " << s << ", token " << t << ", head " << h);
        const bool sees = s <= t && (h < 2 || s > t - 3);
        CHECK(torch::equal(after[0][h][t], before[0][h][t]) != sees);
      }
  }
}

TEST_CASE("what can't stand beside n-gram heads is told", "[paper-32]") {
  CHECK(problems_of(decoder()).empty());
  CHECK(problems_of(decoder(busy())).empty());
  auto options = decoder();
  options.decoder.mixer.as<NgramAndAttentionOptions>().heads = 5;
  CHECK(problems_of(options) == "decoder.mixer.heads: expected at most the attention's heads (4), got 5\n");
  CHECK_THROWS_AS(NgramAndAttention(options_of(5), small_attention(), small_width, true), ShapeError);
  options = decoder();
  options.decoder.attention.value_width = 3;
  CHECK(problems_of(options) ==
        "decoder.attention.value_width: expected d_model / heads (2) beside n-gram heads, which are that wide: outputs "
        "of "
        "all heads stand in one list; got 3\n");
  CHECK_THROWS_AS(NgramAndAttention(options_of(2), options.decoder.attention, small_width, true), ShapeError);
  options = decoder();
  options.decoder.attention.heads = 3;
  options.decoder.attention.head_width = 2;
  CHECK(problems_of(options) ==
        "decoder.attention.heads: expected a divisor of d_model (8), which n-gram heads share in chunks, got 3\n");
  options = decoder();
  options.decoder.attention.then.items.emplace_back(adapter_catalogue, "mix_heads");
  CHECK(problems_of(options) ==
        "decoder.attention.then[0]: adapter.mix_heads can't stand beside mixer.ngram_and_attention: its heads read the "
        "keys "
        "and values of all heads, and n-gram heads have none\n");
  options = decoder();
  options.decoder.attention.gates.items.emplace_back(gate_catalogue, "l0_round");
  CHECK(problems_of(options) ==
        "decoder.attention.gates[0]: gate.l0_round can't stand beside mixer.ngram_and_attention: it goes by how many "
        "of a "
        "layer's heads are open, and n-gram heads have no gate\n");
}

TEST_CASE("what is said of attentions is said of those beside n-gram heads, by their numbers", "[paper-32]") {
  const auto task = make_task(R"({"type": "generated", "train": 50, "valid": 20, "test": 20,
      "exercise": {"type": "offsets", "vocabulary": 4, "offsets": [1], "length": {"min": 6, "max": 6}}})");
  auto options = decoder(busy());
  options.output.choose("tags");
  const auto model = std::make_shared<DecoderOnly>(options, task->context());
  fill(*model);
  model->keep({{Stack::dec_self, {{1, 2, 3}, {0, 1, 3}}}});
  const auto shown = AttentionMeasure(AttentionMeasureOptions{}).measure(*model, *task, 1);
  REQUIRE(shown["heads"].size() == 3);
  for (const auto* head : {"dec.self.0.1", "dec.self.1.0", "dec.self.1.1"}) CHECK(shown["heads"].contains(head));
  CHECK_THROWS_WITH(ConfidenceScorer(ConfidenceOptions{}).score(*model, *task, 1),
                    "confidence: dec.self.0 has heads without attention weights; choose another scorer");
  const auto windows = WindowsMeasure(WindowsMeasureOptions{}).measure(*model, *task, 1)["windows"];
  REQUIRE(windows.size() == 3);
  CHECK(windows["dec.self.1.0"] == 3);
  const auto& mixer = *model->mixers().front().second;
  REQUIRE(attention_in(mixer));
  CHECK(attention_in(mixer)->heads() == std::vector<int64_t>{1});
}
