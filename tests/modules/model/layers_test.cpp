// Encoders of their own width, and layers that differ from the others of their stack.
#include "modules/attention/position/rope.h"
#include "modules/attention/project/standard.h"
#include "modules/model/encoder_decoder.h"
#include "modules/model/single_stack.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

std::string messages(const Options& options) {
  Problems problems;
  options.rules(problems);
  std::string text;
  for (const auto& problem : problems.found) text += problem.field + ": " + problem.message + "\n";
  return text;
}

EncoderDecoderOptions wide_encoder(int64_t width) {
  auto options = small_encoder_decoder();
  options.embedding.tie = "target";
  options.encoder.d_model = width;
  return options;
}

}  // namespace

TEST_CASE("an encoder of its own width has embeddings, layers and norms of it, and cross-attentions read it") {
  const auto model = std::make_shared<EncoderDecoder>(wide_encoder(12), small_context());
  fill(*model);
  model->eval();
  const auto p = model->named_parameters();
  CHECK(shape_text(p["source_tokens.weight"]) == "[11, 12]");
  CHECK(shape_text(p["target_tokens.weight"]) == "[11, 8]");
  CHECK(shape_text(p["encoder.layers.1.self_attention.project.weight"]) == "[36, 12]");
  CHECK(shape_text(p["encoder.norm.weight"]) == "[12]");
  CHECK(shape_text(p["decoder.layers.0.cross_attention.project.query_weight"]) == "[8, 8]");
  CHECK(shape_text(p["decoder.layers.0.cross_attention.project.memory_weight"]) == "[16, 12]");
  const auto batch = small_batch();
  Forward run;
  CHECK(shape_text(model->encode(batch.source_BS, batch.source_mask_BS, run)) == "[3, 6, 12]");
  CHECK(shape_text(logits_of(*model, batch)) == "[3, 8, 11]");
}

TEST_CASE("an encoder's width left out is the model's, to the bit") {
  auto said = small_encoder_decoder();
  said.encoder.d_model = small_width;
  const auto batch = small_batch();
  const auto one = make_model(model_choice("encoder_decoder", said)),
             other = make_model(model_choice("encoder_decoder", small_encoder_decoder()));
  CHECK(torch::equal(logits_of(*one, batch), logits_of(*other, batch)));
}

TEST_CASE("matrices of source and target are one only where widths are one, and heads divide their own stack's width") {
  auto options = wide_encoder(12);
  CHECK(messages(options) == "");
  options.embedding.tie = "all";
  CHECK(messages(options) ==
        "embedding.tie: \"all\" expects one width for source and target, got an encoder of 12 and d_model 8; use "
        "\"target\" or \"none\"\n");
  CHECK_THROWS_WITH(
      EncoderDecoder(options, small_context()),
      "model.embedding.tie: \"all\" expects one width for source and target, got 12 and 8; use \"target\" or \"none\"");
  options = wide_encoder(10);
  CHECK(messages(options) ==
        "encoder.attention.heads: expected a divisor of d_model (10), or a head_width beside it, got 4; nearest "
        "d_model: 8, 12\n");
}

TEST_CASE("layers named in per_layer are made otherwise, the others as the stack says") {
  auto options = small_encoder_decoder();
  options.encoder.layers = 3;
  LayerOverride middle;
  middle.layers = {1};
  middle.attention = options.encoder.attention;
  middle.attention.heads = 2;
  middle.attention.value_width = 5;
  middle.feed_forward.choose("swiglu");
  options.encoder.per_layer = {middle};
  CrossLayerOverride last;
  last.layers = {1};
  last.attention = options.decoder.attention;
  last.cross_attention = options.decoder.cross_attention;
  last.cross_attention.heads = 8;
  last.feed_forward = options.decoder.feed_forward;
  options.decoder.per_layer = {last};
  CHECK(messages(options) == "");
  const auto model = make_model(model_choice("encoder_decoder", options));
  const auto heads = model->original_heads();
  CHECK(heads.at(Stack::enc_self) == std::vector<int64_t>{4, 2, 4});
  CHECK(heads.at(Stack::dec_self) == std::vector<int64_t>{4, 4});
  CHECK(heads.at(Stack::dec_cross) == std::vector<int64_t>{4, 8});
  const auto p = model->named_parameters();
  CHECK(p.contains("encoder.layers.1.feed_forward.gate.weight"));
  CHECK(!p.contains("encoder.layers.0.feed_forward.gate.weight"));
  CHECK(shape_text(p["encoder.layers.1.self_attention.mix.weight"]) == "[8, 10]");
  CHECK(shape_text(model->ones().at(Stack::enc_self)) == "[3, 4]");

  // Heads of each layer are masked and removed by their own numbers.
  torch::NoGradGuard no_grad;
  const auto batch = small_batch();
  auto scale = model->ones();
  scale[Stack::enc_self][1][0] = 0;
  scale[Stack::dec_cross][1][7] = 0;
  Forward run;
  run.scale = scale;
  const auto masked = model->logits(batch, run);
  auto removed = std::dynamic_pointer_cast<Model>(model->clone());
  auto kept = model->heads();
  kept[Stack::enc_self][1] = {1};
  kept[Stack::dec_cross][1] = {0, 1, 2, 3, 4, 5, 6};
  removed->keep(kept);
  CHECK(difference(logits_of(*removed, batch), masked) < 1e-5);
  CHECK(difference(logits_of(*model, batch), masked) > 1e-4);
  const auto again = std::dynamic_pointer_cast<Model>(removed->clone());
  CHECK(torch::equal(logits_of(*again, batch), logits_of(*removed, batch)));
}

TEST_CASE("an override that says what the stack says changes no bit") {
  auto options = small_decoder_only();
  LayerOverride same;
  same.layers = {0, 1};
  same.attention = options.decoder.attention;
  same.feed_forward = options.decoder.feed_forward;
  const auto batch = small_batch();
  const auto plain = make_model(model_choice("decoder_only", options));
  options.decoder.per_layer = {same};
  CHECK(torch::equal(logits_of(*make_model(model_choice("decoder_only", options)), batch), logits_of(*plain, batch)));
}

TEST_CASE("per_layer names layers that exist, each once, and keeps the rules of attentions") {
  auto options = small_encoder_decoder();
  LayerOverride one;
  one.layers = {0, 2};
  one.attention = options.encoder.attention;
  one.attention.heads = 3;
  options.encoder.per_layer = {one, one};
  options.encoder.per_layer[1].layers = {0};
  options.encoder.per_layer[1].attention.heads = 2;
  CHECK(messages(options.encoder) ==
        "per_layer[0].layers[1]: expected a layer from 0 to 1, got 2\n"
        "per_layer[1].layers[0]: layer 0 stands in per_layer[0] already; say all about a layer in one place\n");
  CHECK(messages(options) ==
        "encoder.per_layer[0].attention.heads: expected a divisor of d_model (8), or a head_width beside it, got 3; "
        "nearest d_model: 6, 9\n");
  CHECK_THROWS_WITH(options.encoder.parts(), "per_layer: expected a layer from 0 to 1, got 2");
  options.encoder.per_layer[0].layers.clear();
  CHECK(messages(options.encoder) == "per_layer[0].layers: expected at least one layer\n");
  CrossLayerOverride cross;
  cross.layers = {0};
  cross.attention = options.decoder.attention;
  cross.cross_attention = options.decoder.cross_attention;
  cross.cross_attention.position.choose("rope");
  options = small_encoder_decoder();
  options.decoder.per_layer = {cross};
  CHECK(messages(options) ==
        "decoder.per_layer[0].cross_attention.position: rope: expected a self-attention; a cross-attention's queries "
        "and keys share no positions\n");
}

}  // namespace headlab
