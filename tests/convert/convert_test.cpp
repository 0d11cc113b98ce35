// Trained attentions made into others.
#include "src/convert/convert.h"

#include "modules/attention/position/adarope.h"
#include "modules/attention/project/collaborative.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/model/attentions.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"
#include "src/convert/collaborative.h"
#include "src/convert/head_maps.h"
#include "src/convert/mix_heads.h"
#include "src/spec/dump.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

const ToyTask& task() {
  static const ToyTask toy({7, 5, 3}, small_vocabulary);
  return toy;
}

std::shared_ptr<Model> made(const Choice& options, const HeadTable& kept) {
  return models().make(options, small_context(kept));
}

ConvertOptions to(const std::string& type) {
  ConvertOptions options;
  options.to.choose(type);
  return options;
}

ConvertOptions to_mix_heads(int64_t components) {
  auto options = to("mix_heads");
  options.to.as<MixHeadsConversionOptions>().components = components;
  return options;
}

ConvertOptions to_collaborative(int64_t rank, const std::string& scale = "original") {
  auto options = to("collaborative");
  options.to.as<CollaborativeConversionOptions>().parafac.rank = rank;
  options.to.as<CollaborativeConversionOptions>().scale = scale;
  return options;
}

Converted converted(Model& model, const Choice& options, const ConvertOptions& how) {
  return convert(model, options, how, task(), 5, made);
}

Choice translator(const AttentionOptions& attention) {
  return model_choice("encoder_decoder", small_encoder_decoder(attention, attention));
}

Tensor logits(Model& model) {
  torch::NoGradGuard no_grad;
  model.eval();
  return logits_of(model, small_batch());
}

/// Gives all of a model's heads keys and values that are mixes of a few components.
void plant(Model& model, int64_t components) {
  torch::NoGradGuard no_grad;
  for (const auto& [site, mixer] : model.mixers()) {
    auto& attention = dynamic_cast<Attention&>(*mixer);
    auto maps = head_maps(attention, site);
    const auto H = maps.key_GDK.size(0);
    const auto low = [&](Tensor& weight, Tensor& bias, const std::string& name) {
      const auto rows = torch::cat({weight, bias.unsqueeze(1)}, 1);
      const auto mix = noise({H, components}, to_string(site) + name);
      const auto mixed = torch::matmul(mix, rows.narrow(0, 0, components).flatten(1)).view_as(rows);
      weight = mixed.narrow(1, 0, weight.size(1)).clone();
      bias = mixed.select(1, weight.size(1)).clone();
    };
    low(maps.key_GDK, maps.key_bias_GK, "k");
    low(maps.value_GDK, maps.value_bias_GK, "v");
    set_head_maps(attention, maps);
  }
}

}  // namespace

TEST_CASE("a converted model answers as before where nothing is lost, and differs in its attentions alone") {
  DefaultDtype guard(torch::kFloat64);
  const auto options = translator(small_attention());
  const auto model = make_model(options);
  const auto before = logits(*model);
  for (const auto& how : {to("standard"), to_mix_heads(small_heads), to_collaborative(small_width)}) {
    INFO(how.to.type());
    const auto made = converted(*model, options, how);
    CHECK(difference(logits(*made.model), before) < 1e-11);
    CHECK(made.report["logits"]["largest_difference"].get<double>() < 1e-11);
    CHECK(made.report["attentions"].size() == 6);
    CHECK(made.report["parameters_before"] == model->parameter_count());
    CHECK(made.report["parameters_after"] == made.model->parameter_count());
    const auto old = named_tensors(*model), now = named_tensors(*made.model);
    for (const auto& [name, tensor] : old)
      if (name.find("attention.project.") == std::string::npos) {
        INFO(name);
        REQUIRE(now.count(name) == 1);
        CHECK(torch::equal(now.at(name), tensor));
      }
    for (const auto& [site, mixer] : made.model->mixers())
      CHECK(dump(dynamic_cast<Attention&>(*mixer).options()) == dump(attentions_of(made.options).at(site)));
  }
  CHECK(difference(logits(*model), before) == 0);  // the old one stays
}

TEST_CASE("stacks and layers that are named are converted, the others stay") {
  const auto options = translator(small_attention());
  const auto model = make_model(options);
  auto how = to_mix_heads(2);
  how.stacks = {"dec.cross", "enc.self"};
  how.layers = {1};
  const auto made = converted(*model, options, how);
  std::string which;
  for (const auto& [site, figures] : made.report["attentions"].items()) which += site + " ";
  CHECK(which == "enc.self.1 dec.cross.1 ");
  for (const auto& [site, attention] : attentions_of(made.options))
    CHECK((attention.project.type() == "grouped") == (site.layer == 1 && site.stack != Stack::dec_self));
  how.layers = {2};
  CHECK_THROWS_WITH(converted(*model, options, how),
                    ContainsSubstring("no attention of the model stands in the stacks and layers named"));
}

TEST_CASE("a pruned model converts with the heads that it has") {
  DefaultDtype guard(torch::kFloat64);
  const auto options = translator(small_attention());
  const auto model = make_model(options);
  auto kept = model->heads();
  kept[Stack::enc_self] = {{0, 3}, {2}};
  kept[Stack::dec_cross] = {{1, 2, 3}, {}};
  model->keep(kept);
  for (const auto& how : {to("standard"), to_mix_heads(small_heads), to_collaborative(small_width)}) {
    INFO(how.to.type());
    auto stays = how;
    if (how.to.type() != "standard") stays.stacks = {"enc.self", "dec.self"};
    const auto made = converted(*model, options, stays);
    CHECK(text_of(made.model->heads()) == text_of(kept));
    CHECK(difference(logits(*made.model), logits(*model)) < 1e-11);
  }
}

TEST_CASE("a conversion converts: keys and values that groups share, and mixes of heads, written out for each head") {
  DefaultDtype guard(torch::kFloat64);
  for (const bool mixes : {false, true}) {
    auto attention = small_attention();
    attention.project.choose("grouped");
    attention.project.as<GroupedProjectOptions>().groups = 2;
    attention.project.as<GroupedProjectOptions>().bias = !mixes;
    if (mixes) attention.then.items.emplace_back(adapter_catalogue, "mix_heads");
    const auto options = translator(attention);
    const auto model = make_model(options);
    const auto whole = converted(*model, options, to("standard"));
    CHECK(difference(logits(*whole.model), logits(*model)) < 1e-12);
    CHECK(whole.report["cache_after"].get<int64_t>() == 2 * whole.report["cache_before"].get<int64_t>());
    // And back: the heads are mixes of two, so two components lose nothing.
    const auto back = converted(*whole.model, whole.options, to_mix_heads(2));
    CHECK(difference(logits(*back.model), logits(*model)) < 1e-11);
    CHECK(back.report["largest"]["key_error"].get<double>() < 1e-14);
    CHECK(back.report["largest"]["value_error"].get<double>() < 1e-14);
  }
}

TEST_CASE("a conversion keeps a model's one table of frequencies, in attentions that change and those that stay") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = small_attention();
  attention.project.choose("grouped");
  attention.project.as<GroupedProjectOptions>().groups = 2;
  attention.position.choose("adarope");
  attention.position.as<AdaRopeOptions>().share = "model";
  const auto options = model_choice("decoder_only", small_decoder_only(attention));
  const auto model = make_model(options);
  auto how = to("standard");
  how.layers = {1};
  const auto made = converted(*model, options, how);
  CHECK(difference(logits(*made.model), logits(*model)) < 1e-12);
  const auto tables = made.model->named_parameters();
  const auto table = [&](const std::string& layer) {
    return tables["decoder.layers." + layer + ".self_attention.position.log_frequency"];
  };
  CHECK(table("0").is_same(table("1")));
}

TEST_CASE("head-mode SVD finds the components that heads are mixes of, and keeps h'/h of the cache") {
  DefaultDtype guard(torch::kFloat64);
  for (const std::string position : {"none", "rope"}) {
    auto attention = small_attention();
    attention.position.choose(position);
    const auto options = model_choice("decoder_only", small_decoder_only(attention));
    const auto model = make_model(options);
    plant(*model, 2);
    const auto made = converted(*model, options, to_mix_heads(2));
    CHECK(made.report["largest"]["key_error"].get<double>() < 1e-14);
    CHECK(made.report["largest"]["value_error"].get<double>() < 1e-14);
    CHECK(difference(logits(*made.model), logits(*model)) < 1e-11);
    CHECK(2 * made.report["cache_after"].get<int64_t>() == made.report["cache_before"].get<int64_t>());
    const auto one = converted(*model, options, to_mix_heads(1));
    CHECK(one.report["largest"]["key_error"].get<double>() > 0.1);
    CHECK(4 * one.report["cache_after"].get<int64_t>() == one.report["cache_before"].get<int64_t>());
  }
}

TEST_CASE("what head-mode SVD loses is the singular values that it leaves out") {
  DefaultDtype guard(torch::kFloat64);
  const auto options = model_choice("decoder_only", small_decoder_only());
  const auto model = make_model(options);
  const auto made = converted(*model, options, to_mix_heads(2));
  for (const auto& [site, mixer] : model->mixers()) {
    const auto maps = head_maps(dynamic_cast<Attention&>(*mixer), site);
    const auto S = torch::linalg_svdvals(torch::cat({maps.key_GDK, maps.key_bias_GK.unsqueeze(1)}, 1).flatten(1));
    const auto lost = (S.slice(0, 2).norm() / S.norm()).item<double>();
    CHECK(made.report["attentions"][to_string(site)]["key_error"].get<double>() == Approx(lost).epsilon(1e-10));
  }
  // 2 h' h numbers of mixing, beside two components' keys and values.
  const auto& attention = dynamic_cast<const Attention&>(*made.model->mixers().front().second);
  const auto parameters = attention.named_parameters();
  CHECK(parameters["then0.key_mix"].numel() + parameters["then0.value_mix"].numel() == 2 * 2 * small_heads);
}

TEST_CASE(
    "converted to collaborative heads, keys' biases cancel and queries' become content biases, in all attentions") {
  DefaultDtype guard(torch::kFloat64);
  for (const std::string normalise : {"softmax", "sparsemax"})
    for (const std::string position : {"none", "alibi"})
      for (const std::optional<double> scale : {std::optional<double>{}, std::optional<double>{0.3}}) {
        auto attention = small_attention();
        attention.position.choose(position);
        attention.value_width = 3;
        attention.weigh.normalise.choose(normalise);
        attention.weigh.score.as<DotProductOptions>().scale = scale;
        auto cross = attention;
        cross.position.choose("none");
        const auto options = model_choice("encoder_decoder", small_encoder_decoder(attention, cross));
        const auto model = make_model(options);
        const auto made = converted(*model, options, to_collaborative(small_width));
        CHECK(difference(logits(*made.model), logits(*model)) < 1e-11);
        CHECK(made.report["largest"]["error"].get<double>() < 1e-13);
      }
}

TEST_CASE("the shared scale is another temperature: scores times sqrt(heads d_k / rank)") {
  DefaultDtype guard(torch::kFloat64);
  const auto options = model_choice("decoder_only", small_decoder_only());
  const auto model = make_model(options);
  constexpr int64_t rank = 5;
  auto original = converted(*model, options, to_collaborative(rank)),
       shared = converted(*model, options, to_collaborative(rank, "shared"));
  const auto scores = [](Model& of) {
    of.eval();
    Tensor seen;
    LambdaTap tap([](At at, Site site) { return at == At::scores && site.layer == 0; },
                  [&](At, Site, Tensor s) { return seen = s; });
    Forward run;
    run.taps = {&tap};
    torch::NoGradGuard no_grad;
    of.logits(small_batch(), run);
    return seen.index({torch::isfinite(seen)});
  };
  const auto ratio = std::sqrt(static_cast<double>(small_width) / rank);
  CHECK(difference(scores(*shared.model), ratio * scores(*original.model)) < 1e-12);
}

TEST_CASE("attentions whose scores are no products of plain queries and keys are refused by name") {
  const auto refused = [](const std::function<void(AttentionOptions&)>& change, const ConvertOptions& how) {
    auto attention = small_attention();
    change(attention);
    const auto options = model_choice("decoder_only", small_decoder_only(attention));
    const auto model = make_model(options);
    try {
      converted(*model, options, how);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused([](auto& a) { a.position.choose("rope"); }, to_collaborative(4)) ==
        "convert: dec.self.0: expected positions that leave queries and keys as they are (none, alibi, offset), got "
        "rope");
  CHECK(refused([](auto& a) { a.weigh.score.choose("additive"); }, to_collaborative(4)) ==
        "convert: dec.self.0: expected the score dot_product, got additive");
  CHECK(refused([](auto& a) { a.project.choose("collaborative"); }, to_mix_heads(2)) ==
        "convert: dec.self.0: expected the project standard or grouped, got collaborative");
  CHECK(refused([](auto& a) { a.then.items.emplace_back(adapter_catalogue, "persistent"); }, to("standard")) ==
        "convert: dec.self.0: expected no adapter but mix_heads or fuse_groups, got persistent, which changes what "
        "keys and values are");
  CHECK(refused([](auto&) {}, to_mix_heads(3)) ==
        "convert: the attentions that mix_heads makes break a rule: decoder.per_layer[0].attention.project.groups: "
        "expected a divisor of heads (4), got 3");
}

TEST_CASE("attentions of a model are replaced one by one, and every other layer stays as it was written") {
  auto options = small_encoder_decoder();
  options.encoder.layers = options.decoder.layers = 4;
  LayerOverride together;
  together.layers = {1, 2, 3};
  together.attention.heads = 2;
  together.feed_forward = options.encoder.feed_forward;
  options.encoder.per_layer = {together};
  const auto choice = model_choice("encoder_decoder", options);
  const auto before = attentions_of(choice);
  CHECK(before.size() == 12);
  CHECK(with_attentions(choice, {}).as<EncoderDecoderOptions>().encoder.per_layer.size() == 1);
  AttentionOptions one, other;
  one.heads = 1;
  other.heads = 8;
  const std::map<Site, AttentionOptions> wanted{{{Stack::enc_self, 2}, one},
                                                {{Stack::dec_cross, 0}, other},
                                                {{Stack::dec_self, 0}, one},
                                                {{Stack::dec_cross, 3}, one}};
  const auto made = with_attentions(choice, wanted);
  for (const auto& [site, attention] : attentions_of(made)) {
    const auto found = wanted.find(site);
    CHECK(attention.heads == (found == wanted.end() ? before.at(site) : found->second).heads);
  }
  const auto& result = made.as<EncoderDecoderOptions>();
  CHECK(result.encoder.per_layer[0].layers == std::vector<int64_t>{1, 3});
  for (const auto& parts : result.encoder.parts()) CHECK(parts.feed_forward.as<PositionWiseOptions>().width == 12);
  for (const auto& parts : result.decoder.parts()) CHECK(parts.feed_forward.as<PositionWiseOptions>().width == 12);
  Problems problems;
  result.encoder.rules(problems);
  result.decoder.rules(problems);
  CHECK(problems.found.empty());
  CHECK_THROWS_WITH(with_attentions(choice, {{{Stack::enc_self, 4}, one}}),
                    ContainsSubstring("enc.self.4: expected an attention"));
}

}  // namespace headlab
