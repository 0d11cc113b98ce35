// heads_by_length, the gate and the mixer, against the attentions that they are made of.
#include "modules/attention/gate/heads_by_length.h"

#include "modules/attention/gate/scalar.h"
#include "modules/base/error.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t D = 16, T = 12;
const Site encoder{Stack::enc_self, 0};

AttentionOptions eight() {
  AttentionOptions options;
  options.heads = 8;
  return options;
}

AttentionOptions subset(std::vector<int64_t> heads, std::vector<int64_t> thresholds, bool rescale = true) {
  auto options = eight();
  options.gates.items.emplace_back(gate_catalogue, "heads_by_length");
  auto& gate = options.gates.items.back().as<HeadsByLengthOptions>();
  gate.heads = std::move(heads);
  gate.thresholds = std::move(thresholds);
  gate.rescale = rescale;
  return options;
}

std::shared_ptr<SeparateHeads> separate(std::vector<int64_t> heads, std::vector<int64_t> thresholds,
                                        const AttentionOptions& attention = eight()) {
  SeparateHeadsOptions options;
  options.heads = std::move(heads);
  options.thresholds = std::move(thresholds);
  auto mixer = std::make_shared<SeparateHeads>(options, attention, D);
  fill(*mixer);
  mixer->eval();
  return mixer;
}

Visibility hidden_after(const std::vector<int64_t>& lengths) {
  Visibility see;
  see.key_mask_BS = mask_of(lengths, T);
  return see;
}

Tensor of(Mixer& mixer, const Tensor& x, const Visibility& see, Forward& run) {
  return mixer.forward(call_of(x, run, see, {}, encoder));
}
Tensor of(Mixer& mixer, const Tensor& x, const Visibility& see) {
  Forward run;
  return of(mixer, x, see, run);
}

Tensor of_row(Mixer& mixer, const Tensor& x, int64_t row, int64_t length) {
  return of(mixer, x.narrow(0, row, 1), hidden_after({length}));
}

}  // namespace

TEST_CASE("where every text gets all heads, heads by length are plain heads", "[gate][paper-33]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({3, T, D}, "x");
  const auto see = hidden_after({12, 5, 9});
  const auto plain = make_attention(eight(), D), gated = make_attention(subset({2, 4, 8}, {1, 2}), D);
  CHECK(difference(of(*gated, x, see), of(*plain, x, see)) == 0);
  const auto mixer = separate({2, 4, 8}, {1, 2});
  CHECK(difference(of(*mixer, x, see), of(*mixer->attentions()[2], x, see)) == 0);
}

TEST_CASE("a text has its length's first heads, times heads by heads open", "[gate][paper-33]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({4, T, D}, "x");
  const std::vector<int64_t> lengths{4, 5, 8, 12}, heads{2, 4, 4, 8};  // a threshold is the longest text of its length
  for (const bool rescale : {true, false}) {
    const auto plain = make_attention(eight(), D), gated = make_attention(subset({2, 4, 8}, {4, 8}, rescale), D);
    Forward run;
    auto scale = torch::zeros({4, 1, 8});
    for (int64_t b = 0; b < 4; ++b)
      scale[b][0].slice(0, 0, heads[b]).fill_(rescale ? 8.0 / static_cast<double>(heads[b]) : 1.0);
    run.scale[Stack::enc_self] = scale;
    CHECK(difference(of(*gated, x, hidden_after(lengths)), of(*plain, x, hidden_after(lengths), run)) < 1e-12);
  }
  const auto mixer = separate({2, 4, 8}, {4, 8});
  const auto y = of(*mixer, x, hidden_after(lengths));
  for (int64_t b = 0; b < 4; ++b) {
    const auto which = heads[b] == 2 ? 0 : heads[b] == 4 ? 1 : 2;
    CHECK(difference(y.narrow(0, b, 1), of_row(*mixer->attentions()[which], x, b, lengths[b])) < 1e-12);
    CHECK(mixer->attentions()[which]->shape().head_width == D / heads[b]);
  }
}

TEST_CASE("what a text gets does not depend on its batch mates", "[gate][paper-33]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({4, T, D}, "x");
  const std::vector<int64_t> lengths{4, 12, 8, 5};
  const auto gated = make_attention(subset({2, 4, 8}, {4, 8}), D);
  const auto mixer = separate({2, 4, 8}, {4, 8});
  for (auto* one : std::initializer_list<Mixer*>{gated.get(), mixer.get()}) {
    const auto y = of(*one, x, hidden_after(lengths));
    for (int64_t b = 0; b < 4; ++b) {
      CHECK(difference(y.narrow(0, b, 1), of_row(*one, x, b, lengths[b])) < 1e-12);
      // Nor on padding.
      const auto cut = x.narrow(0, b, 1).narrow(1, 0, lengths[b]);
      CHECK(difference(y.narrow(0, b, 1).narrow(1, 0, lengths[b]), of(*one, cut, {})) < 1e-12);
    }
  }
}

TEST_CASE("scales, tells of examples and taps reach the attention of each length", "[gate][paper-33]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({4, T, D}, "x");
  const std::vector<int64_t> lengths{4, 12, 8, 5};
  auto attention = eight();
  const auto mixer = separate({2, 4, 8}, {4, 8}, attention);
  const auto scale = noise({4, 1, 8}, "scale");
  Forward run;
  run.scale[Stack::enc_self] = scale;
  const auto y = of(*mixer, x, hidden_after(lengths), run);
  for (int64_t b = 0; b < 4; ++b) {
    Forward own;
    own.scale[Stack::enc_self] = scale[b];
    CHECK(difference(y.narrow(0, b, 1), of(*mixer, x.narrow(0, b, 1), hidden_after({lengths[b]}), own)) < 1e-12);
  }
  std::vector<int64_t> heads;
  LambdaTap tap([](At at, Site) { return at == At::z; },
                [&](At, Site, const Tensor& z) {
                  heads.push_back(z.size(1));
                  return torch::zeros_like(z);
                });
  Forward seen;
  seen.taps = {&tap};
  const auto nothing = of(*mixer, x, hidden_after(lengths), seen);
  CHECK((heads == std::vector<int64_t>{2, 4, 8}));
  Forward closed;
  closed.scale[Stack::enc_self] = torch::zeros({1, 8});
  CHECK(difference(nothing, of(*mixer, x, hidden_after(lengths), closed)) < 1e-12);
}

TEST_CASE("attentions of their own for each length have as many parameters each, and learn from their texts alone",
          "[gate][paper-33][cost]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto mixer = separate({2, 4, 8}, {4, 8});
  for (const auto& attention : mixer->attentions()) {
    int64_t matrices = 0;
    for (const auto& parameter : attention->parameters())
      if (parameter.dim() > 1) matrices += parameter.numel();
    CHECK(matrices == 4 * D * D);
  }
  of(*mixer, noise({2, T, D}, "x"), hidden_after({3, 12})).sum().backward();
  const auto moved = [&](std::size_t i) { return mixer->attentions()[i]->parameters().front().grad().defined(); };
  CHECK(moved(0));
  CHECK(!moved(1));
  CHECK(moved(2));
  // Of whole heads: as many products of queries and keys, whatever their number, since all together are D wide.
  for (const int64_t length : {3, 6, 12})
    CHECK(mixer->flops(length, length, false) == make_attention(eight(), D)->flops(length, length, false));
}

TEST_CASE("heads by length are for what reads a whole text", "[gate][paper-33]") {
  const torch::NoGradGuard no_grad;
  const auto x = noise({1, T, D}, "x");
  const auto gated = make_attention(subset({2, 8}, {4}), D);
  const auto mixer = separate({2, 8}, {4});
  for (auto* one : std::initializer_list<Mixer*>{gated.get(), mixer.get()})
    CHECK_THROWS_AS(of(*one, x, causal()), UsageError);
  CHECK_THROWS_AS(make_attention(subset({2, 9}, {4}), D), ShapeError);
  CHECK_THROWS_AS(make_attention(subset({2, 8}, {4}), D, /*cross=*/true), ShapeError);
  const auto mistakes = [](const Options& options) {
    Problems found;
    options.rules(found);
    std::string text;
    for (const auto& problem : found.found) text += problem.field + ": " + problem.message + "\n";
    return text;
  };
  auto decoder = small_decoder_only(subset({2, 4}, {4}));
  decoder.decoder.attention.heads = small_heads;
  CHECK_THAT(mistakes(decoder),
             ContainsSubstring("decoder.attention.gates[0]: heads_by_length goes by the length of the text"));
  auto separated = small_decoder_only();
  separated.decoder.mixer.choose("heads_by_length");
  separated.decoder.mixer.as<SeparateHeadsOptions>().heads = {2, 3};
  separated.decoder.mixer.as<SeparateHeadsOptions>().thresholds = {4};
  separated.decoder.attention.head_width = 3;
  CHECK_THAT(mistakes(separated), ContainsSubstring("decoder.mixer: heads_by_length goes by the length of the text"));
  CHECK_THAT(mistakes(separated),
             ContainsSubstring("decoder.mixer.heads[1]: expected a divisor of d_model (8), got 3"));
  CHECK_THAT(mistakes(separated),
             ContainsSubstring("decoder.attention.head_width: expected none beside the mixer heads_by_length"));
  HeadsByLengthOptions bins;
  bins.thresholds = {4, 4};
  CHECK_THAT(mistakes(bins), ContainsSubstring("thresholds[1]: expected more than the one before (4), got 4"));
  bins.thresholds = {4};
  CHECK_THAT(mistakes(bins), ContainsSubstring("thresholds: expected one less than heads (3), got 1"));
  auto nine = small_encoder_only(subset({2, 9}, {4}));
  CHECK_THAT(mistakes(nine),
             ContainsSubstring("encoder.attention.gates[0].heads: expected at most the attention's heads (8), got 9"));
}

}  // namespace headlab
