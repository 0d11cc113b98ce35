// 2106.09650 and 2004.08249: the recursion of omega by hand over the parts of a model, and when it is taken.
#include "modules/layer/admin.h"

#include <cmath>

#include "modules/model/encoder_decoder.h"
#include "modules/model/single_stack.h"
#include "src/train/profile.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

Choice admin(int64_t batches = 1) {
  Choice choice(residual_catalogue, "admin");
  choice.as<AdminOptions>().profile_batches = batches;
  return choice;
}

/// The part of a model with this name.
template <class T>
T& part(const torch::nn::Module& model, const std::string& name) {
  return dynamic_cast<T&>(*model.named_modules()[name]);
}

double variance(const Tensor& x) {
  const auto flat = x.flatten().to(torch::kFloat64).contiguous();
  const auto n = flat.numel();
  const auto* numbers = flat.data_ptr<double>();
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += numbers[i];
  for (int64_t i = 0; i < n; ++i)
    squares += (numbers[i] - sum / static_cast<double>(n)) * (numbers[i] - sum / static_cast<double>(n));
  return squares / static_cast<double>(n);
}

/// Goes by the sublayers of a stack in the recursion's way, and gives omega of each by name.
std::map<std::string, double> by_hand(
    const torch::nn::Module& model, const std::string& stack, int64_t layers, Tensor& x,
    const std::function<Tensor(const std::string& sublayer, int64_t layer, const Tensor& x)>& f,
    const std::vector<std::string>& sublayers) {
  std::map<std::string, double> omegas;
  double square = 1;
  for (int64_t layer = 0; layer < layers; ++layer)
    for (const auto& sublayer : sublayers) {
      const auto name = stack + ".layers." + std::to_string(layer) + "." + sublayer;
      const auto omega = std::sqrt(square);
      omegas[name + "_scale.weight"] = omega;
      const auto made = f(name, layer, x), kept = x * omega;
      square = variance(kept) + variance(made);
      x = part<Norm>(model, name + "_norm").normalise(kept + made);
    }
  return omegas;
}

void check_omegas(const torch::nn::Module& model, const std::map<std::string, double>& expected) {
  const auto parameters = model.named_parameters();
  std::size_t scales = 0;
  for (const auto& item : parameters) scales += item.key().find("_scale.weight") != std::string::npos;
  CHECK(scales == expected.size());
  for (const auto& [name, omega] : expected) {
    INFO(name);
    REQUIRE(parameters.contains(name));
    CHECK(difference(parameters[name], torch::full_like(parameters[name], omega)) < 1e-12 * omega);
  }
}

/// What enters the first layer of a stack.
struct Entering : Tap {
  std::map<Stack, Tensor> x;
  bool wants(At at, Site site) const override { return at == At::residual_in && site.layer == 0; }
  Tensor see(At, Site site, Tensor value, const AttentionCall*) override { return x[site.stack] = value; }
};

}  // namespace

TEST_CASE("omega is the recursion over what sublayers add, on three layers by hand", "[paper-41]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto options = small_decoder_only();
  options.residual = admin();
  options.decoder.layers = 3;
  const auto model = make_model(model_choice("decoder_only", options));
  for (auto& item : model->named_parameters())
    if (item.key().find("_scale") != std::string::npos) item.value().fill_(1);
  const auto batch = small_batch();
  Entering entering;
  Forward pass;
  pass.taps = {&entering};
  begin_profile(pass);
  model->hidden(batch, pass);
  for (const auto& item : model->named_parameters())
    if (item.key().find("_scale") != std::string::npos)
      CHECK(item.value().eq(1).all().item<bool>());  // a pass changes nothing
  CHECK(apply_profile({pass}));

  auto x = entering.x.at(Stack::dec_self);
  const auto omegas =
      by_hand(*model, "decoder", 3, x,
              [&](const std::string& name, int64_t layer, const Tensor& in) {
                Forward run;
                if (name.find("feed_forward") != std::string::npos) return part<FeedForward>(*model, name).feed(in);
                return part<Mixer>(*model, name).forward(call_of(in, run, causal(), {}, {Stack::dec_self, layer}));
              },
              {"self_attention", "feed_forward"});
  CHECK(omegas.at("decoder.layers.0.self_attention_scale.weight") == 1);
  CHECK(omegas.at("decoder.layers.2.feed_forward_scale.weight") >
        omegas.at("decoder.layers.1.feed_forward_scale.weight"));
  check_omegas(*model, omegas);
  Forward plain;
  CHECK(difference(model->hidden(batch, plain), x) <
        1e-12);  // and the pass that profiled was the model's with these omegas
}

TEST_CASE("an encoder and a decoder have chains of their own, and of several batches the squares' mean counts",
          "[paper-41]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto options = small_encoder_decoder();
  options.residual = admin();
  const auto model = std::dynamic_pointer_cast<EncoderDecoder>(make_model(model_choice("encoder_decoder", options)));
  for (auto& item : model->named_parameters())
    if (item.key().find("_scale") != std::string::npos) item.value().fill_(1);
  std::map<std::string, double> squares;
  std::vector<Forward> passes(2);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    auto batch = small_batch();
    if (i == 1) batch.source_BS = batch.source_BS.flip({0, 1});
    Entering entering;
    passes[i].taps = {&entering};
    begin_profile(passes[i]);
    model->hidden(batch, passes[i]);
    passes[i].taps.clear();
    Visibility source, target = causal();
    source.key_mask_BS = batch.source_mask_BS;
    const auto f = [&](const Tensor& memory) {
      return [&, memory](const std::string& name, int64_t layer, const Tensor& in) {
        Forward run;
        if (name.find("feed_forward") != std::string::npos) return part<FeedForward>(*model, name).feed(in);
        const bool cross = name.find("cross") != std::string::npos, encoder = name.find("encoder") == 0;
        const Site site{encoder ? Stack::enc_self : cross ? Stack::dec_cross : Stack::dec_self, layer};
        return part<Mixer>(*model, name)
            .forward(call_of(in, run, encoder || cross ? source : target, cross ? memory : Tensor(), site));
      };
    };
    auto memory = entering.x.at(Stack::enc_self), x = entering.x.at(Stack::dec_self);
    auto omegas = by_hand(*model, "encoder", 2, memory, f({}), {"self_attention", "feed_forward"});
    omegas.merge(by_hand(*model, "decoder", 2, x, f(memory), {"self_attention", "cross_attention", "feed_forward"}));
    CHECK(omegas.at("encoder.layers.0.self_attention_scale.weight") == 1);
    CHECK(omegas.at("decoder.layers.0.self_attention_scale.weight") == 1);
    for (const auto& [name, omega] : omegas) squares[name] += omega * omega / 2;
  }
  CHECK(apply_profile(passes));
  for (auto& [name, square] : squares) square = std::sqrt(square);
  check_omegas(*model, squares);
}

TEST_CASE("with omega of ones admin is post-norm, to the bit", "[paper-41]") {
  auto options = small_encoder_decoder();
  options.residual.choose("post");
  const auto post = make_model(model_choice("encoder_decoder", options));
  options.residual = admin();
  const auto other = make_model(model_choice("encoder_decoder", options));
  torch::NoGradGuard no_grad;
  const auto from = post->named_parameters();
  for (auto& item : other->named_parameters()) {
    if (const auto* same = from.find(item.key()))
      item.value().copy_(*same);
    else
      item.value().fill_(1);
  }
  const auto batch = small_batch();
  CHECK(torch::equal(logits_of(*other, batch), logits_of(*post, batch)));
  for (auto& item : other->named_parameters())
    if (item.key() == "decoder.layers.1.cross_attention_scale.weight") item.value()[3] = 1.5;
  CHECK(difference(logits_of(*other, batch), logits_of(*post, batch)) > 1e-3);
}

TEST_CASE(
    "omega is taken from the training's batches once: not again where a training goes on, nor from a model that has "
    "learned",
    "[paper-41]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  const auto fresh = [&] {
    EncoderDecoderOptions options;
    options.d_model = 16;
    options.dropout = 0.2;
    options.residual = admin(3);
    options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
    auto model = std::make_shared<EncoderDecoder>(options, task.context());
    initialise(*model, 5);
    return model;
  };
  TrainOptions options;
  options.steps = 9;
  options.batch.max_rows = 2;
  options.log_every = 1;
  options.schedule.choose("constant");
  // As the stage "train" does it.
  const auto train = [&](Model& model, const std::filesystem::path& folder, int64_t stop_after) {
    Trainer trainer(model, task, options, 16, 9);
    const bool goes_on = trainer.resume(folder);
    CHECK(profile_residual(model, admin(3), task, options.batch, 9) == !goes_on);
    trainer.run(folder, [](const TrainReport&) {}, [&] { return trainer.step() == stop_after; });
  };
  headlab::test::Folder whole_folder, folder;
  const auto whole = fresh(), broken = fresh(), rest = fresh();
  train(*whole, whole_folder.path(), -1);
  train(*broken, folder.path(), 4);
  train(*rest, folder.path(), -1);
  const auto expected = whole->named_parameters();
  for (const auto& item : rest->named_parameters()) CHECK(torch::equal(item.value(), expected[item.key()]));
  CHECK(!profile_residual(*whole, admin(3), task, options.batch, 9));
  CHECK(!profile_residual(*fresh(), admin(0), task, options.batch, 9));
  const auto once = fresh();
  CHECK(once->is_training());
  CHECK(profile_residual(*once, admin(3), task, options.batch, 9));
  CHECK(once->is_training());
  CHECK(!profile_residual(*once, admin(3), task, options.batch, 9));
}
