#include "src/export/single_stack.h"

#include <torch/script.h>

#include <algorithm>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "modules/model/single_stack.h"
#include "modules/tensor/init.h"
#include "modules/tensor/torch.h"
#include "src/export/recorded.h"
#include "src/export/trace.h"

namespace headlab {
namespace {

using Inputs = std::vector<c10::IValue>;

const char* const reading = R"script(
def check_length(self, length: int):
    assert length <= self.max_length, "ids: expected at most {} tokens, got {}".format(self.max_length, length)

def full(self, ids: Tensor, mask: Tensor) -> Tensor:
    self.check_length(ids.size(1))
    return self.recorded_full(ids, mask)

def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
    return self.full(ids, mask)
)script";

// dtype 4 is long.
const char* const generating = R"script(
def begin(self, ids: Tensor) -> Tuple[Tensor, List[Tensor]]:
    self.check_length(ids.size(1))
    return self.recorded_begin(ids)

def step(self, ids: Tensor, length: int, caches: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:
    assert ids.size(1) == 1, "step: expected ids [B, 1], got [{}, {}]".format(ids.size(0), ids.size(1))
    self.check_length(length + 1)
    position = torch.full([1], length, dtype=4, device=ids.device)
    return self.recorded_step(ids, position, caches)

def generate_ids(self, ids: Tensor, tokens: int) -> Tensor:
    self.check_length(ids.size(1) + tokens - 1)
    logits, caches = self.begin(ids)
    out = torch.full([ids.size(0), tokens], self.pad, dtype=4, device=ids.device)
    live = torch.ones([ids.size(0)], dtype=11, device=ids.device)
    written = 0
    while written < tokens:
        if self.pad >= 0 and self.pad < logits.size(1) and self.pad != self.eos:
            logits[:, self.pad] = float("-inf")
        if self.bos >= 0 and self.bos < logits.size(1) and self.bos != self.eos:
            logits[:, self.bos] = float("-inf")
        token = logits.argmax(1)
        live = live & (token != self.eos)
        if not bool(live.any()):
            return out[:, :written]
        token = token.masked_fill(~live, self.pad)
        out[:, written] = token
        written += 1
        if written < tokens:
            logits, caches = self.step(token.unsqueeze(1), ids.size(1) + written - 1, caches)
    return out[:, :written]
)script";

void record_single_stack(torch::jit::Module& module, SingleStack& model, bool generates) {
  constexpr int64_t B = 2, T = 5;
  const auto on_device = torch::dtype(torch::kLong).device(model.device());
  const auto ids = torch::zeros({B, T}, on_device);
  const auto mask = torch::ones({B, T}, on_device.dtype(torch::kBool));
  record(module, "recorded_full", {"ids", "mask"}, {ids, mask}, [&](Inputs in) {
    Forward run;
    return model.logits({{}, {}, in[0].toTensor(), in[1].toTensor()}, run);
  });
  module.define(reading);
  if (!generates) return;
  StackState filled;
  record(module, "recorded_begin", {"ids"}, {ids}, [&](Inputs in) {
    Forward run;
    auto state = model.start();
    const auto given = in[0].toTensor();
    const auto hidden = model.read(given, positions_of(given), {}, &state, run);
    filled = state;
    return with_caches(model.logits_of(hidden.select(1, -1), run), state);
  });
  record(module, "recorded_step", {"ids", "position", "caches"},
         {ids.slice(1, 0, 1), torch::full({1}, T, on_device), flat(filled)}, [&](Inputs in) {
           Forward run;
           auto state = unflat(in[2].toTensorList(), filled);
           const auto hidden = model.read(in[0].toTensor(), in[1].toTensor(), {}, &state, run);
           return with_caches(model.logits_of(hidden.select(1, -1), run), state);
         });
  module.define(generating);
}

double compare_single_stack(SingleStack& model, torch::jit::Module& loaded, bool generates, int64_t B, int64_t T) {
  T = std::min(T, model.max_length());
  const auto where = [&](const std::string& what, int64_t length) {
    return "export: " + what + " at batch " + std::to_string(B) + ", length " + std::to_string(length);
  };
  const auto ids =
      torch::randint(model.target_vocabulary(), {B, T}, named_generator(1, "export" + std::to_string(T)), torch::kLong)
          .to(model.device());
  const auto lengths = (T - torch::arange(B).mul(2)).clamp_min(1).to(model.device());
  const auto mask = torch::arange(T, lengths.options()).unsqueeze(0).lt(lengths.unsqueeze(1));
  Forward run;
  auto largest = compare_outputs(where("full", T), model.logits({{}, {}, ids, mask}, run),
                                 loaded.get_method("full")({ids, mask}).toTensor());
  if (!generates) return largest;
  const auto first = (T + 1) / 2;
  const auto stepper = model.stepper({}, run);
  auto expected = stepper->step(ids.slice(1, 0, first), run);
  auto got = loaded.get_method("begin")({ids.slice(1, 0, first)}).toTuple();
  largest = std::max(largest, compare_outputs(where("begin", first), expected, got->elements()[0].toTensor()));
  for (int64_t t = first; t < T; ++t) {
    const auto next = ids.slice(1, t, t + 1);
    expected = stepper->step(next, run);
    got = loaded.get_method("step")({next, t, got->elements()[1]}).toTuple();
    largest = std::max(largest, compare_outputs(where("step", t + 1), expected, got->elements()[0].toTensor()));
  }
  return largest;
}

}  // namespace

ExportReport export_single_stack(Model& model, const std::filesystem::path& path, const TextIds& ids,
                                 const std::map<std::string, std::string>& files, bool absorb) {
  if (!dynamic_cast<SingleStack*>(&model))
    throw UsageError("export: expected a model of one text, decoder_only or encoder_only");
  const auto copy = std::dynamic_pointer_cast<SingleStack>(model.clone());
  copy->eval();
  for (auto& parameter : copy->parameters()) parameter.requires_grad_(false);
  const torch::NoGradGuard no_grad;
  const bool generates = copy->generates();
  auto written = copy;
  if (absorb) {
    written = std::dynamic_pointer_cast<SingleStack>(copy->clone());
    absorb_maps(*written);
  }

  ExportReport report;
  report.path = path;
  std::stringstream archive;
  {
    auto module = mirror(*written, "TextModel");
    const auto number = [&](const std::string& name, int64_t value) {
      module.register_attribute(name, c10::IntType::get(), value);
    };
    number("pad", ids.pad);
    number("bos", ids.bos);
    number("eos", ids.eos);
    number("max_length", copy->max_length());
    record_single_stack(module, *written, generates);
    module.save(archive, torch::jit::ExtraFilesMap(files.begin(), files.end()));
  }
  auto loaded = torch::jit::load(archive, copy->device());
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{1, 3}, {4, 11}, {2, 29}})
    report.max_difference = std::max(report.max_difference, compare_single_stack(*copy, loaded, generates, B, T));
  report.no_text = "this file takes and gives ids";
  const auto bytes = archive.str();
  write_file_atomically(path, bytes);
  report.bytes = static_cast<int64_t>(bytes.size());
  return report;
}

}  // namespace headlab
