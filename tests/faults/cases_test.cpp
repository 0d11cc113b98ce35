// Faults that users of other systems have met, where a part of headlab shows that it has not; each test is named after
// its case. More of them stand beside what they are about (tests/coverage.json lists all).
#include <torch/script.h>

#include "modules/attention/gate/windows.h"
#include "modules/base/atomic_file.h"
#include "src/checkpoint/checkpoint.h"
#include "src/export/torchscript.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"
#include "tests/support/toy_task.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

TrainOptions one_step_of(int64_t rows, int64_t accumulate) {
  TrainOptions options;
  options.steps = 1;
  options.batch.max_rows = rows;
  options.accumulate = accumulate;
  options.clip = 0;
  options.log_every = 1;
  options.schedule.choose("constant");
  return options;
}

ExportOptions plain_export() {
  ExportOptions options;
  options.sentences = sentences({4, 9}, 7);
  return options;
}

/// Every node of a graph, those within branches and loops too.
void for_each_node(torch::jit::Block& block, const std::function<void(torch::jit::Node&)>& visit) {
  for (auto* node : block.nodes()) {
    visit(*node);
    for (auto* inner : node->blocks()) for_each_node(*inner, visit);
  }
}

}  // namespace

TEST_CASE("mean-of-means: micro-batches of 3 and 97 tokens give the loss and the gradient of one batch of 100",
          "[cases]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({3, 97});
  auto whole = toy_model(task), parts = toy_model(task);
  double sum_of_losses = 0;
  {
    const torch::NoGradGuard no_grad;
    for (const int64_t example : {0, 1}) {
      Forward run;
      sum_of_losses += token_loss(*whole, task.batch("train", {example}, torch::kCPU), 0.1, run).sum.item<double>();
    }
  }
  TrainReport of_whole, of_parts;
  Trainer(*whole, task, one_step_of(2, 1), 16, 9).run({}, [&](const TrainReport& report) { of_whole = report; });
  Trainer(*parts, task, one_step_of(1, 2), 16, 9).run({}, [&](const TrainReport& report) { of_parts = report; });
  CHECK(of_parts.tokens == 100);
  CHECK(of_parts.loss == Catch::Detail::Approx(sum_of_losses / 100).epsilon(1e-12));
  CHECK(of_whole.loss == Catch::Detail::Approx(sum_of_losses / 100).epsilon(1e-12));
  const auto expected = whole->named_parameters();
  for (const auto& item : parts->named_parameters()) {
    INFO(item.key());
    REQUIRE(item.value().grad().defined());
    CHECK(difference(item.value().grad(), expected[item.key()].grad()) < 1e-12);
  }
}

TEST_CASE("traced-shape: a file exported at short lengths runs at batch 4 of length 128 and batch 2 of length 7",
          "[cases]") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto model = translator([](EncoderDecoderOptions& options) { options.embedding.max_length = 160; });
  export_torchscript(*model, scratch / "model.pt", plain_export());
  auto file = torch::jit::load((scratch / "model.pt").string());
  for (const auto& [B, T] : std::vector<std::pair<int64_t, int64_t>>{{4, 128}, {2, 7}}) {
    INFO("batch " << B << ", length " << T);
    const auto source = random_ids({B, T}, translator_vocabulary, "source"),
               target = random_ids({B, T}, translator_vocabulary, "target");
    const auto mask = mask_of(std::vector<int64_t>(static_cast<std::size_t>(B), T), T);
    const auto got = file.get_method("full")({source, mask, target}).toTensor();
    CHECK(difference(got, logits_of(*model, {source, mask, target, {}})) < 1e-4);
  }
}

TEST_CASE("device-frozen: a file names no device and keeps no tensor that does not move with it", "[cases]") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto model = translator([](EncoderDecoderOptions& options) {
    Choice windows(gate_catalogue, "windows");
    windows.as<WindowsOptions>().windows = {2, 0, 5, 2};
    for (auto* attention : {&options.encoder.attention, &options.decoder.attention}) {
      attention->position.choose("rope");
      attention->gates.items = {windows};
    }
  });
  export_torchscript(*model, scratch / "model.pt", plain_export());
  auto file = torch::jit::load((scratch / "model.pt").string());
  int nodes = 0;
  for (const auto& method : file.get_methods()) {
    INFO(method.name());
    for_each_node(*method.graph()->block(), [&](torch::jit::Node& node) {
      ++nodes;
      if (node.kind() != c10::prim::Constant || node.outputs().size() != 1) return;
      const auto& type = *node.output()->type();
      CHECK(type.kind() != c10::TypeKind::DeviceObjType);
      // A number as a tensor goes with tensors of any device.
      if (type.kind() == c10::TypeKind::TensorType) CHECK(node.t(c10::attr::value).dim() == 0);
    });
  }
  CHECK(nodes > 200);
}

TEST_CASE("half-overflow: keys that are masked weigh exactly 0 in float16 and bfloat16, the others sum to 1",
          "[cases]") {
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kFloat16, torch::kBFloat16}) {
    INFO(torch::toString(type));
    auto attention = make_attention(small_attention(), small_width);
    attention->to(type);
    auto see = causal();
    see.key_mask_BS = mask_of({5, 3}, 5);
    int seen = 0;
    LambdaTap tap([](At at, Site) { return at == At::weights; },
                  [&](At, Site, Tensor weights) {
                    ++seen;
                    const auto allowed = torch::ones({5, 5}, torch::kBool)
                                             .tril()
                                             .unsqueeze(0)
                                             .logical_and(see.key_mask_BS.unsqueeze(1))
                                             .unsqueeze(1);
                    CHECK(weights.masked_select(allowed.logical_not().expand_as(weights)).eq(0).all().item<bool>());
                    // Rounding of up to five weights to 8 (float16: 11) bits.
                    CHECK((weights.to(torch::kFloat32).sum(-1) - 1).abs().max().item<float>() <
                          (type == torch::kBFloat16 ? 5.f / 256 : 5.f / 2048));
                    return weights;
                  });
    Forward run;
    run.taps = {&tap};
    CHECK(finite(attention->forward(call_of(noise({2, 5, small_width}, "x").to(type) * 100, run, see))));
    CHECK(seen == 1);
  }
}

TEST_CASE("tied-weights: a matrix that is shared is stored once and is one storage again after loading", "[cases]") {
  const Scratch scratch;
  const ToyTask task({3, 5});
  auto model = toy_model(task), other = toy_model(task);
  Trainer(*model, task, one_step_of(2, 1), 16, 9).run(scratch / "train", [](const TrainReport&) {});
  model->keep({{Stack::enc_self, {{0, 2}, {1}}}});
  Checkpoint saved;
  saved.model = named_tensors(*model);
  save_checkpoint(scratch / "final", saved);
  const auto file = read_safetensors(scratch / "final" / "model.safetensors");
  std::set<const void*> storages;
  int64_t numbers = 0;
  for (const auto& [name, tensor] : file.tensors)
    if (tensor.numel() > 0 && storages.insert(tensor.storage().data()).second) numbers += tensor.numel();
  int64_t buffers = 0;
  for (const auto& buffer : model->buffers()) buffers += buffer.numel();
  CHECK(numbers == model->parameter_count() + buffers);

  other->keep(model->heads());
  load_tensors(*other, file.tensors, "final");
  const auto parameters = other->named_parameters();
  int vocabulary_tables = 0;
  for (const auto& item : parameters) vocabulary_tables += item.value().size(0) == 20;
  CHECK(vocabulary_tables == 1);
  Tensor table;
  for (const auto& item : parameters)
    if (item.value().size(0) == 20) table = item.value();
  REQUIRE(table.defined());
  // It embeds the source and the target, and makes the logits.
  const torch::NoGradGuard no_grad;
  other->eval();
  const auto batch = task.batch("train", {0}, torch::kCPU);
  Forward run;
  const auto before = other->logits(batch.inputs, run), hidden = other->hidden(batch.inputs, run);
  table.mul_(2);
  CHECK(difference(other->logits_of(hidden, run), before * 2) < 1e-5);
  CHECK(difference(other->hidden(batch.inputs, run), hidden) > 1e-3);
}

TEST_CASE("uneven-reload: heads pruned unevenly come back from a checkpoint with the same logits", "[cases]") {
  const Scratch scratch;
  const torch::NoGradGuard no_grad;
  const auto model = translator();
  const HeadTable uneven{
      {Stack::enc_self, {{1, 3}, {}}}, {Stack::dec_self, {{0}, {0, 2, 3}}}, {Stack::dec_cross, {{2}, {0, 1, 2, 3}}}};
  model->keep(uneven);
  Checkpoint saved;
  saved.model = named_tensors(*model);
  save_checkpoint(scratch / "final", saved);
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.embedding.max_length = 64;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  const auto made = [&](const HeadTable& kept) {
    return std::make_shared<EncoderDecoder>(options, ModelContext{translator_vocabulary, translator_vocabulary, kept});
  };
  const auto other = made(uneven);
  load_tensors(*other, load_checkpoint(scratch / "final").model, "final");
  other->eval();
  CHECK(text_of(other->heads()) == text_of(uneven));
  const Batch batch{random_ids({3, 6}, translator_vocabulary, "s"),
                    mask_of({6, 4, 5}, 6),
                    random_ids({3, 7}, translator_vocabulary, "t"),
                    {}};
  CHECK(torch::equal(logits_of(*other, batch), logits_of(*model, batch)));
  // With the heads of the whole model, or others, it is refused.
  CHECK_THROWS_WITH(load_tensors(*made({}), load_checkpoint(scratch / "final").model, "final"),
                    ContainsSubstring("final: its tensors do not fit the model; nothing was loaded"));
}

}  // namespace headlab
