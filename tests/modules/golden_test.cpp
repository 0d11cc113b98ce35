// Whole models against those that tools/golden/make_model_goldens.py writes from the formulas alone: logits, loss,
// every gradient and ten training steps.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "modules/attention/project/standard.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/loss/cross_entropy.h"
#include "src/checkpoint/safetensors.h"
#include "src/train/optimizer/adam.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/places.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

const std::filesystem::path folder = test::in_source("tests/golden");

const Json& about() {
  static const Json json = Json::parse(std::ifstream(folder / "model_goldens.json"));
  return json;
}

AttentionOptions attention_of(const Json& c, bool positions) {
  AttentionOptions options;
  options.heads = c.at("heads");
  const int64_t groups = c.at("groups");
  if (groups != options.heads) {
    options.project.choose("grouped");
    options.project.as<GroupedProjectOptions>().groups = groups;
  }
  if (positions && c.at("positions") == "rope") {
    options.position.choose("rope");
  }
  return options;
}

void set_shared(const Json& c, ModelOptions& options) {
  options.d_model = c.at("width");
  options.dropout = 0;
  options.residual.choose(c.at("norm"));
  options.embedding.position.choose(c.at("positions") == "rope" ? "none" : "sinusoidal");
  options.embedding.max_length = 16;
}

template <class StackOptions>
void set_stack(const Json& c, const std::string& layers, StackOptions& options) {
  options.layers = c.at(layers);
  options.attention = attention_of(c, true);
  options.feed_forward.choose(c.at("activation"));
  options.feed_forward.template as<PositionWiseOptions>().width = c.at("inner").get<int64_t>();
}

std::shared_ptr<Model> model_of(const Json& c) {
  const bool encoder = c.at("encoder_layers") > 0, decoder = c.at("decoder_layers") > 0;
  const ModelContext context{c.at("vocabulary"), c.at("vocabulary"), {}};
  if (encoder && decoder) {
    EncoderDecoderOptions options;
    set_shared(c, options);
    set_stack(c, "encoder_layers", options.encoder);
    set_stack(c, "decoder_layers", options.decoder);
    options.decoder.cross_attention = attention_of(c, false);
    return models().make(model_choice("encoder_decoder", options), context);
  }
  if (decoder) {
    DecoderOnlyOptions options;
    set_shared(c, options);
    set_stack(c, "decoder_layers", options.decoder);
    return models().make(model_choice("decoder_only", options), context);
  }
  EncoderOnlyOptions options;
  set_shared(c, options);
  set_stack(c, "encoder_layers", options.encoder);
  return models().make(model_choice("encoder_only", options), context);
}

struct Example {
  Batch batch;
  Tensor target_BT;  // what is to be said; 0: padding
};

/// A batch of the file; `step` -1: the one of the logits.
Example example(const TensorMap& tensors, const Json& c, int64_t step = -1) {
  const auto get = [&](const std::string& name) {
    return step < 0 ? tensors.at(name) : tensors.at("train." + name)[step];
  };
  const auto masked = [&](const std::string& ids, const std::string& lengths) {
    return std::pair(get(ids), torch::arange(get(ids).size(1)).lt(get(lengths).unsqueeze(1)));
  };
  Example example{{}, get("target_out")};
  auto& batch = example.batch;
  const bool encoder = c.at("encoder_layers") > 0, decoder = c.at("decoder_layers") > 0;
  if (encoder && decoder) std::tie(batch.source_BS, batch.source_mask_BS) = masked("source", "source_lengths");
  std::tie(batch.target_BT, batch.target_mask_BT) =
      decoder ? masked("target_in", "target_lengths") : masked("source", "source_lengths");
  return example;
}

Tensor loss_of(Model& model, const Example& example) {
  Forward run;
  const auto kept = example.target_BT.ne(about().at("ids").at("pad").get<int64_t>());
  const auto loss = smoothed_cross_entropy(model.logits(example.batch, run).index({kept}),
                                           example.target_BT.index({kept}), about().at("label_smoothing"));
  return loss.sum / loss.tokens;
}

/// max |a - b| over the largest |b|.
double relative(const Tensor& a, const Tensor& b) {
  return difference(a, b) / std::max(b.abs().max().item<double>(), 1e-3);
}

}  // namespace

TEST_CASE("whole models agree with PyTorch's: logits, loss, every gradient, ten training steps") {
  REQUIRE(about().at("cases").size() >= 4);
  for (const auto& c : about().at("cases"))
    for (const auto& [suffix, type, close] :
         {std::tuple("f64", torch::kFloat64, 1e-10), std::tuple("f32", torch::kFloat32, 1e-5)}) {
      INFO(c.at("name").get<std::string>() << ", " << suffix);
      DefaultDtype guard(type);
      const auto tensors = read_safetensors(folder / c.at("files").at(suffix).get<std::string>()).tensors;
      auto model = model_of(c);
      {
        torch::NoGradGuard no_grad;
        auto parameters = model->named_parameters();
        CHECK(parameters.size() == c.at("parameters").size());
        for (auto& item : parameters) {
          INFO(item.key());
          const auto& initial = tensors.at("initial." + item.key());
          REQUIRE(initial.sizes() == item.value().sizes());
          item.value().copy_(initial);
        }
      }
      const auto first = example(tensors, c);
      Forward run;
      const auto real = first.batch.target_mask_BT;
      CHECK(relative(model->logits(first.batch, run).index({real}), tensors.at("logits").index({real})) < close);

      const auto loss = loss_of(*model, first);
      CHECK(relative(loss.unsqueeze(0), tensors.at("loss")) < close);
      loss.backward();
      for (const auto& item : model->named_parameters()) {
        INFO(item.key());
        CHECK(relative(item.value().grad(), tensors.at("gradient." + item.key())) < close);
      }

      const auto& adamw = about().at("adamw");
      AdamWOptions options;
      options.beta1 = adamw.at("beta1");
      options.beta2 = adamw.at("beta2");
      options.epsilon = adamw.at("epsilon");
      options.weight_decay = adamw.at("weight_decay");
      options.decay_vectors = true;
      AdamW optimizer(options, trained_parameters(*model));
      const auto& losses = tensors.at("losses");
      REQUIRE(losses.size(0) == 10);
      for (int64_t step = 0; step < losses.size(0); ++step) {
        INFO("step " << step);
        model->zero_grad();
        const auto of_step = loss_of(*model, example(tensors, c, step));
        CHECK(relative(of_step, losses[step]) < close);
        of_step.backward();
        optimizer.step(adamw.at("learning_rate"));
      }
      for (const auto& item : model->named_parameters()) {
        INFO(item.key());
        auto got = item.value().detach().clone(), expected = tensors.at("final." + item.key()).clone();
        if (c.at("zero_gradient").contains(item.key())) {  // rounding noise that Adam scales up
          const auto rows = c.at("zero_gradient").at(item.key());
          for (auto* x : {&got, &expected}) x->slice(0, rows[0].get<int64_t>(), rows[1].get<int64_t>()).zero_();
        }
        CHECK(relative(got, expected) < close);
      }
    }
}

}  // namespace headlab
