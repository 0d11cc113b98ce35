#include <ATen/Parallel.h>
#include <torch/version.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "modules/model/encoder_decoder.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"
#include "src/cli/bench_attention.h"
#include "src/cli/command.h"
#include "src/task/token_loss.h"
#include "src/train/optimizer/adam.h"

namespace headlab {
namespace {

struct Settings {
  int64_t width = 256, layers = 3, heads = 8, vocabulary = 8000, batch = 32, length = 32, steps = 50, seed = 1;
  int threads = 2;
  double dropout = 0.1;
  std::string weights, ids;
};

// The training step of the trainer on given ids, so that another program can be timed on the same work.
int bench_train(const Settings& settings) {
  at::set_num_threads(settings.threads);
  torch::manual_seed(settings.seed);
  EncoderDecoderOptions options;
  options.d_model = settings.width;
  options.dropout = settings.dropout;
  options.encoder.layers = options.decoder.layers = settings.layers;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads =
      settings.heads;
  ModelContext context;
  context.source_vocabulary = context.target_vocabulary = settings.vocabulary;
  const auto owned = std::make_shared<EncoderDecoder>(options, context);
  auto& model = *owned;
  initialise(model, static_cast<uint64_t>(settings.seed));
  if (!settings.weights.empty()) {
    auto tensors = named_tensors(model);
    const auto given = read_safetensors(settings.weights).tensors;
    for (auto& [name, tensor] : tensors)
      if (given.count(name)) tensor = given.at(name);
    load_tensors(model, tensors, settings.weights);
  }
  model.train();
  const auto ids = read_safetensors(settings.ids).tensors;
  const auto sources = ids.at("source"), targets = ids.at("target");
  const auto parameters = trained_parameters(model);
  AdamWOptions adam;
  adam.weight_decay = 0.01;
  adam.decay_vectors = true;
  AdamW optimizer(adam, parameters);
  std::vector<Tensor> losses;
  const auto warmup = (settings.steps + 9) / 10;  // allocators and caches fill; not timed
  auto start = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < settings.steps; ++step) {
    if (step == warmup) start = std::chrono::steady_clock::now();
    const auto n = step % sources.size(0);
    TokenBatch batch;
    batch.inputs.source_BS = sources[n];
    batch.inputs.target_BT = targets[n].narrow(1, 0, settings.length);
    batch.targets_N = targets[n].narrow(1, 1, settings.length).flatten();
    for (const auto& [name, parameter] : parameters) const_cast<Tensor&>(parameter).mutable_grad() = Tensor();
    Forward run;
    const auto loss = token_loss(model, batch, 0.1, run);
    const auto mean = loss.sum / static_cast<double>(loss.tokens);
    mean.backward();
    clip_gradients(parameters, 1.0);
    optimizer.step(1e-3);
    losses.push_back(mean.detach());
  }
  const auto values = torch::stack(losses);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  nlohmann::ordered_json line;
  for (int64_t i = 0; i < values.size(0); ++i) line["losses"].push_back(values[i].item<double>());
  const auto timed = settings.steps - warmup;
  line["timed_steps"] = timed;
  line["tokens_per_s"] = static_cast<double>(timed * settings.batch * settings.length) / seconds;
  line["seconds"] = seconds;
  line["versions"] = {{"libtorch", TORCH_VERSION}};
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace

std::function<int()> add_bench(CLI::App& command) {
  command.require_subcommand(1);
  auto settings = std::make_shared<Settings>();
  auto chosen = std::make_shared<std::function<int()>>();
  add_bench_attention(command, chosen);
  auto* train =
      command.add_subcommand("train", "training steps of an encoder-decoder on given ids; prints one JSON line");
  train->add_option("--width", settings->width, "d_model")->capture_default_str();
  train->add_option("--layers", settings->layers, "layers of the encoder, and of the decoder")->capture_default_str();
  train->add_option("--heads", settings->heads, "heads of each attention")->capture_default_str();
  train->add_option("--vocabulary", settings->vocabulary, "tokens of the shared vocabulary")->capture_default_str();
  train->add_option("--batch", settings->batch, "rows of a batch")->capture_default_str();
  train->add_option("--length", settings->length, "tokens of a row, on each side")->capture_default_str();
  train->add_option("--steps", settings->steps, "training steps")->capture_default_str();
  train->add_option("--threads", settings->threads, "CPU threads")->capture_default_str();
  train->add_option("--seed", settings->seed, "of weights and dropout")->capture_default_str();
  train->add_option("--dropout", settings->dropout, "on sublayer outputs and embeddings")->capture_default_str();
  train->add_option("--weights", settings->weights, "safetensors of initial weights");
  train->add_option("--ids", settings->ids, "safetensors with `source` [N,B,T] and `target` [N,B,T+1]")->required();
  train->callback([chosen, settings] { *chosen = [settings] { return bench_train(*settings); }; });
  return [chosen] { return (*chosen)(); };
}

}  // namespace headlab
