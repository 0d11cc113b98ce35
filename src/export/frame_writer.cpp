#include "src/export/frame_writer.h"

#include <torch/script.h>

#include <algorithm>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "modules/model/frame_ctc.h"
#include "modules/model/frame_transcriber.h"
#include "modules/tensor/init.h"
#include "modules/tensor/torch.h"
#include "src/decode/best_path.h"
#include "src/export/loops.h"
#include "src/export/recorded.h"
#include "src/export/trace.h"

namespace headlab {
namespace {

using Inputs = std::vector<c10::IValue>;

const char* const checks = R"script(
def check_frames(self, frames: Tensor):
    S, F = frames.size(1), frames.size(2)
    assert S <= self.max_length, "frames: expected at most {}, got {}".format(self.max_length, S)
    assert F == self.frame_width, "frames: expected {} numbers each, got {}".format(self.frame_width, F)
)script";

const char* const transcribing = R"script(
def check_length(self, length: int):
    assert length <= self.max_length, "target: expected at most {} tokens, got {}".format(self.max_length, length)

def encode(self, frames: Tensor, mask: Tensor) -> Tensor:
    self.check_frames(frames)
    return self.recorded_encode(frames, mask)

def start(self, memory: Tensor, mask: Tensor) -> List[Tensor]:
    return self.recorded_start(memory, mask)

def step(self, ids: Tensor, length: int, mask: Tensor, caches: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:
    assert ids.size(1) == 1, "step: expected ids [B, 1], got [{}, {}]".format(ids.size(0), ids.size(1))
    self.check_length(length + 1)
    return self.recorded_step(ids, mask, caches)

def begin(self, target: Tensor, memory: Tensor, mask: Tensor) -> Tuple[Tensor, List[Tensor]]:
    logits, caches = self.step(target[:, :1], 0, mask, self.start(memory, mask))
    for t in range(1, target.size(1)):
        logits, caches = self.step(target[:, t : t + 1], t, mask, caches)
    return logits, caches

def full(self, frames: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    self.check_length(target.size(1))
    caches = self.start(self.encode(frames, mask), mask)
    all: List[Tensor] = []
    for t in range(target.size(1)):
        logits, caches = self.step(target[:, t : t + 1], t, mask, caches)
        all.append(logits)
    return torch.stack(all, 1)

def forward(self, frames: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    return self.full(frames, mask, target)
)script";

std::string searching(const SearchOptions& search) {
  return R"script(
def transcribe_with_scores(
    self, frames: Tensor, mask: Tensor, beam: int, length_penalty: float, max_length: int
) -> Tuple[Tensor, Tensor]:
    limits = self.limits_of(mask.sum(1), max_length)
    return self.search(self.encode(frames, mask), mask, limits, beam, length_penalty)

def transcribe(self, frames: Tensor, mask: Tensor, )script" +
         search_arguments(search) + R"script() -> Tensor:
    return self.transcribe_with_scores(frames, mask, beam, length_penalty, max_length)[0]
)script";
}

// dtype 4 is long.
const char* const reading_paths = R"script(
def ctc(self, frames: Tensor, mask: Tensor) -> Tensor:
    self.check_frames(frames)
    return self.recorded_ctc(frames, mask)

def best_path(self, frames: Tensor, mask: Tensor) -> Tensor:
    best = self.ctc(frames, mask).argmax(2).masked_fill(~mask, 0)
    before = torch.cat([best[:, :1] * 0, best[:, :-1]], 1)
    said = (best != 0) & (best != before)
    order = torch.argsort((~said).to(4), stable=True, dim=1)
    ids = best.masked_fill(~said, self.target_pad).gather(1, order)
    return ids[:, : int(said.sum(1).max())]
)script";

const char* const by_path = R"script(
def transcribe(self, frames: Tensor, mask: Tensor) -> Tensor:
    return self.best_path(frames, mask)

def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
    return self.ctc(frames, mask)
)script";

Batch heard_batch(const Tensor& frames_BSF, const Tensor& mask_BS, const Tensor& target_BT = {}) {
  Batch batch;
  batch.source_mask_BS = mask_BS;
  batch.source_BS = torch::zeros_like(mask_BS, torch::kLong);
  batch.side[frames_name] = frames_BSF;
  batch.target_BT = target_BT;
  return batch;
}

/// Records what the model does. The sizes of these inputs appear nowhere in the recordings.
void record_writer(torch::jit::Module& module, FrameWriter& model) {
  constexpr int64_t B = 2, S = 5;
  const auto on_device = torch::dtype(model.dtype()).device(model.device());
  const auto frames = torch::zeros({B, S, model.frame_width()}, on_device);
  const auto mask = torch::ones({B, S}, on_device.dtype(torch::kBool));
  if (model.has_ctc())
    record(module, "recorded_ctc", {"frames", "mask"}, {frames, mask}, [&](Inputs in) {
      Forward run;
      return model.frame_log_probabilities(model.read(heard_batch(in[0].toTensor(), in[1].toTensor()), run));
    });
  auto* transcriber = dynamic_cast<FrameTranscriber*>(&model);
  if (!transcriber) return;
  record(module, "recorded_encode", {"frames", "mask"}, {frames, mask}, [&](Inputs in) {
    Forward run;
    return model.read(heard_batch(in[0].toTensor(), in[1].toTensor()), run).h_BSD;
  });
  Forward run;
  const auto heard = model.read(heard_batch(frames, mask), run);
  const auto list_of = [](const State& state) { return c10::List<Tensor>(c10::ArrayRef<Tensor>(state.stored)); };
  record(module, "recorded_start", {"memory", "mask"}, {heard.h_BSD, mask}, [&](Inputs in) {
    Forward own;
    return list_of(transcriber->start({in[0].toTensor(), in[1].toTensor()}, own));
  });
  const auto ids = torch::zeros({B, 1}, on_device.dtype(torch::kLong));
  record(module, "recorded_step", {"ids", "mask", "caches"}, {ids, mask, list_of(transcriber->start(heard, run))},
         [&](Inputs in) {
           Forward own;
           State state;
           for (const Tensor& tensor : in[2].toTensorList()) state.stored.push_back(tensor);
           const auto said = transcriber->decode(in[0].toTensor(), {{}, in[1].toTensor()}, {}, &state, own);
           return c10::ivalue::Tuple::create({transcriber->logits_of(said.select(1, -1), own), list_of(state)});
         });
}

/// A comparison of what a file holds with the eager model, on random frames.
class WriterComparison {
 public:
  WriterComparison(FrameWriter& model, torch::jit::Module& loaded, const TextIds& ids, const SearchOptions& search,
                   ExportReport& report)
      : model_(model), loaded_(loaded), ids_(ids), search_(search), report_(report) {}

  void at(int64_t B, int64_t S, int64_t T) {
    S = std::min(S, model_.max_length());
    T = std::min(T, model_.max_length());
    where_ = " at batch " + std::to_string(B) + ", " + std::to_string(S) + " frames";
    const auto like = torch::dtype(model_.dtype()).device(model_.device());
    const auto frames =
        torch::randn({B, S, model_.frame_width()}, named_generator(1, "export" + std::to_string(S)), torch::kFloat64)
            .to(like);
    const auto lengths = (S - torch::arange(B).mul(2)).clamp_min(1).to(model_.device());
    const auto mask = torch::arange(S, lengths.options()).unsqueeze(0).lt(lengths.unsqueeze(1));
    if (model_.has_ctc()) paths(frames, mask);
    if (!dynamic_cast<FrameTranscriber*>(&model_)) return;
    logits(frames, mask, T);
    for (const auto beam : {int64_t{1}, std::max<int64_t>(search_.beam, 2)}) texts(frames, mask, beam);
  }

 private:
  void compare(const std::string& what, const Tensor& expected, const Tensor& got) {
    report_.max_difference =
        std::max(report_.max_difference, compare_outputs("export: " + what + where_, expected, got));
  }

  void paths(const Tensor& frames, const Tensor& mask) {
    Forward run;
    const auto expected = model_.frame_log_probabilities(model_.read(heard_batch(frames, mask), run));
    const auto silent = expected.lt(-1e29);
    compare("ctc", expected.masked_fill(silent, 0),
            loaded_.get_method("ctc")({frames, mask}).toTensor().masked_fill(silent, 0));
    if (rows_of(loaded_.get_method("best_path")({frames, mask}).toTensor()) != best_paths(expected, mask))
      throw Error("export: best_path" + where_ + " writes something else than the model's; nothing was written");
  }

  void logits(const Tensor& frames, const Tensor& mask, int64_t T) {
    const auto target = torch::randint(model_.target_vocabulary(), {frames.size(0), T},
                                       named_generator(1, "export" + std::to_string(T)), torch::kLong)
                            .to(model_.device());
    Forward run;
    compare("full", model_.logits(heard_batch(frames, mask, target), run),
            loaded_.get_method("full")({frames, mask, target}).toTensor());
    const auto first = (T + 1) / 2;
    const auto stepper = model_.stepper(heard_batch(frames, mask), run);
    auto expected = stepper->step(target.slice(1, 0, first), run);
    const auto memory = loaded_.get_method("encode")({frames, mask});
    auto got = loaded_.get_method("begin")({target.slice(1, 0, first), memory, mask}).toTuple();
    compare("begin", expected, got->elements()[0].toTensor());
    for (int64_t t = first; t < T; ++t) {
      const auto next = target.slice(1, t, t + 1);
      expected = stepper->step(next, run);
      got = loaded_.get_method("step")({next, t, mask, got->elements()[1]}).toTuple();
      compare("step", expected, got->elements()[0].toTensor());
    }
  }

  void texts(const Tensor& frames, const Tensor& mask, int64_t beam) {
    auto search_options = search_;
    search_options.beam = beam;
    search_options.n_best = 1;
    Forward run;
    const auto expected = search(model_, heard_batch(frames, mask), ids_, search_options, run);
    const auto got =
        loaded_.get_method("transcribe_with_scores")({frames, mask, beam, search_.length_penalty, search_.max_length})
            .toTuple();
    const auto written = rows_of(got->elements()[0].toTensor());
    const auto scores = got->elements()[1].toTensor().cpu();
    for (std::size_t b = 0; b < expected.size(); ++b) {
      const auto& best = expected[b].front();
      const auto score = scores[static_cast<int64_t>(b)].item<double>();
      const auto tolerance = export_tolerance(model_.dtype()) * std::max(1.0, std::abs(best.score));
      if (written[b] != best.ids && std::abs(score - best.score) > tolerance)
        throw Error("export: transcribe" + where_ + " writes something else than the model (beam " +
                    std::to_string(beam) + "): expected score " + std::to_string(best.score) + ", got " +
                    std::to_string(score) + "; nothing was written");
    }
    report_.sentences_compared += static_cast<int64_t>(expected.size());
  }

  /// Without what pads them.
  std::vector<std::vector<int64_t>> rows_of(const Tensor& ids_BT) const {
    std::vector<std::vector<int64_t>> rows;
    const auto on_cpu = ids_BT.cpu().contiguous();
    for (const auto& row : on_cpu.unbind(0)) {
      auto& one = rows.emplace_back(row.const_data_ptr<int64_t>(), row.const_data_ptr<int64_t>() + row.numel());
      std::erase(one, ids_.pad);
    }
    return rows;
  }

  FrameWriter& model_;
  torch::jit::Module& loaded_;
  const TextIds& ids_;
  const SearchOptions& search_;
  ExportReport& report_;
  std::string where_;
};

}  // namespace

ExportReport export_frame_writer(Model& model, const std::filesystem::path& path, const TextIds& ids,
                                 const SearchOptions& search, const std::map<std::string, std::string>& files,
                                 bool absorb) {
  if (!dynamic_cast<FrameWriter*>(&model))
    throw UsageError("export: expected a model that writes what frames say, frame_transcriber or frame_ctc");
  const auto copy = std::dynamic_pointer_cast<FrameWriter>(model.clone());
  copy->eval();
  for (auto& parameter : copy->parameters()) parameter.requires_grad_(false);
  const torch::NoGradGuard no_grad;
  auto written = copy;
  if (absorb) {
    written = std::dynamic_pointer_cast<FrameWriter>(copy->clone());
    absorb_maps(*written);
  }

  ExportReport report;
  report.path = path;
  report.no_text = "this file takes frames and gives ids";
  std::stringstream archive;
  {
    auto module = mirror(*written, "FrameWriter");
    const auto number = [&](const std::string& name, int64_t value) {
      module.register_attribute(name, c10::IntType::get(), value);
    };
    number("target_pad", ids.pad);
    number("target_bos", ids.bos);
    number("target_eos", ids.eos);
    number("max_length", copy->max_length());
    number("frame_width", copy->frame_width());
    record_writer(module, *written);
    module.define(checks);
    const bool transcribes = dynamic_cast<FrameTranscriber*>(copy.get()) != nullptr;
    if (transcribes) {
      module.define(transcribing);
      define_search(module, search);
      module.define(searching(search));
    }
    if (copy->has_ctc()) module.define(reading_paths);
    if (!transcribes) module.define(by_path);
    module.save(archive, torch::jit::ExtraFilesMap(files.begin(), files.end()));
  }
  auto loaded = torch::jit::load(archive, copy->device());
  WriterComparison comparison(*copy, loaded, ids, search, report);
  comparison.at(1, 3, 4);
  comparison.at(4, 11, 9);
  comparison.at(2, 29, 31);
  const auto bytes = archive.str();
  write_file_atomically(path, bytes);
  report.bytes = static_cast<int64_t>(bytes.size());
  return report;
}

}  // namespace headlab
