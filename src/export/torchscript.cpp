#include "src/export/torchscript.h"

#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "modules/model/encoder_decoder.h"
#include "modules/tensor/init.h"
#include "modules/tensor/torch.h"
#include "src/decode/translate.h"
#include "src/export/loops.h"
#include "src/export/recorded.h"
#include "src/export/text.h"
#include "src/export/trace.h"

namespace headlab {
namespace {

using c10::IValue;
using Stack = std::vector<IValue>;

/// Records what the model does. The sizes of these inputs appear nowhere in the recordings.
void record_model(torch::jit::Module& module, EncoderDecoder& model, const ExportOptions& options) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t B = 2, S = 5, T = 3;
  const auto on_device = torch::dtype(torch::kLong).device(model.device());
  const auto source = torch::full({B, S}, options.source.eos, on_device);
  const auto mask = torch::ones({B, S}, on_device.dtype(torch::kBool));
  const auto target = torch::full({B, T}, options.target.bos, on_device);

  record(module, "recorded_encode", {"source", "mask"}, {source, mask}, [&](Stack in) {
    Forward run;
    return model.encode(in[0].toTensor(), in[1].toTensor(), run);
  });
  record(module, "recorded_full", {"source", "mask", "target"}, {source, mask, target}, [&](Stack in) {
    Forward run;
    return model.logits({in[0].toTensor(), in[1].toTensor(), in[2].toTensor(), {}}, run);
  });
  Forward run;
  const auto memory = model.encode(source, mask, run);
  StackState filled;
  record(module, "recorded_begin", {"target", "memory", "mask"}, {target, memory, mask}, [&](Stack in) {
    Forward own;
    auto state = model.start();
    const auto ids = in[0].toTensor();
    const auto hidden = model.decode(ids, positions_of(ids), in[1].toTensor(), in[2].toTensor(), {}, &state, own);
    filled = state;
    return with_caches(model.logits_of(hidden.select(1, -1), own), state);
  });
  const auto position = torch::full({1}, T, on_device);
  record(module, "recorded_step", {"ids", "position", "mask", "caches"},
         {target.slice(1, 0, 1), position, mask, flat(filled)}, [&](Stack in) {
           Forward own;
           auto state = unflat(in[3].toTensorList(), filled);
           const auto hidden = model.decode(in[0].toTensor(), in[1].toTensor(), {}, in[2].toTensor(), {}, &state, own);
           return with_caches(model.logits_of(hidden.select(1, -1), own), state);
         });
}

// dtype 4 is long, 7 double.
const char* const methods = R"script(
def check_length(self, what: str, length: int):
    assert length <= self.max_length, "{}: expected at most {} tokens, got {}".format(what, self.max_length, length)

def encode(self, source: Tensor, mask: Tensor) -> Tensor:
    self.check_length("source", source.size(1))
    return self.recorded_encode(source, mask)

def full(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    self.check_length("source", source.size(1))
    self.check_length("target", target.size(1))
    return self.recorded_full(source, mask, target)

def begin(self, target: Tensor, memory: Tensor, mask: Tensor) -> Tuple[Tensor, List[Tensor]]:
    self.check_length("target", target.size(1))
    return self.recorded_begin(target, memory, mask)

def step(self, ids: Tensor, length: int, mask: Tensor, caches: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:
    assert ids.size(1) == 1, "step: expected ids [B, 1], got [{}, {}]".format(ids.size(0), ids.size(1))
    self.check_length("target", length + 1)
    position = torch.full([1], length, dtype=4, device=ids.device)
    return self.recorded_step(ids, position, mask, caches)

def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    return self.full(source, mask, target)
)script";

std::string translating(const SearchOptions& search) {
  return R"script(
def translate_with_scores(self, source: Tensor, beam: int, length_penalty: float, max_length: int) -> Tuple[Tensor, Tensor]:
    assert source.dim() == 2, "source: expected ids [B, S], got {} dimensions".format(source.dim())
    if source.size(0) == 0:
        return source[:, :0], torch.zeros([0], dtype=7, device=source.device)
    lengths = (source != self.source_pad).sum(1)
    ids = torch.cat([source, torch.full_like(source[:, :1], self.source_pad)], 1)
    if source.size(1) == 0:
        ids = torch.full([source.size(0), 1], self.source_pad, dtype=4, device=source.device)
    ids = ids.scatter(1, lengths.unsqueeze(1), self.source_eos)
    lengths = lengths + 1
    ids = ids[:, :int(lengths.max())]
    mask = torch.arange(ids.size(1), device=source.device) < lengths.unsqueeze(1)
    return self.search(self.encode(ids, mask), mask, self.limits_of(lengths, max_length), beam, length_penalty)

def translate_ids(self, source: Tensor, )script" +
         search_arguments(search) + R"script() -> Tensor:
    return self.translate_with_scores(source, beam, length_penalty, max_length)[0]
)script";
}

/// Adds translate; returns why it can't be, or nothing.
std::string add_text(torch::jit::Module& module, const ExportOptions& options) {
  std::string refused;
  if (!options.source_tokenizer || !options.target_tokenizer) {
    refused = "the file was exported without tokenizers";
  } else {
    const auto& source = *options.source_tokenizer;
    const auto& target = *options.target_tokenizer;
    const auto reads = script_tokenizer(source, module, options.lines);
    const bool joint = source.serialized() == target.serialized();
    const auto writes = joint ? reads : script_tokenizer(target, module, {});
    if (!reads.refused.empty()) {
      refused = "the source tokenizer can't be carried: " + reads.refused;
    } else if (!writes.refused.empty()) {
      refused = "the target tokenizer can't be carried: " + writes.refused;
    } else {
      module.register_module("source_tokenizer", reads.module);
      module.register_module("target_tokenizer", writes.module);
    }
  }
  define_translate(module, search_arguments(options.search), refused);
  return refused;
}

torch::jit::Module script_of(EncoderDecoder& model, const ExportOptions& options, std::string& no_text) {
  auto module = mirror(model, "Translator");
  const auto number = [&](const std::string& name, int64_t value) {
    module.register_attribute(name, c10::IntType::get(), value);
  };
  number("source_pad", options.source.pad);
  number("source_eos", options.source.eos);
  number("target_pad", options.target.pad);
  number("target_bos", options.target.bos);
  number("target_eos", options.target.eos);
  number("max_length", model.max_length());
  record_model(module, model, options);
  module.define(methods);
  define_search(module, options.search);
  module.define(translating(options.search));
  module.register_buffer("anchor",
                         torch::empty({0}, torch::dtype(model.dtype()).device(model.device())));  // tells the device
  no_text = add_text(module, options);
  return module;
}

/// A comparison of what a file holds with the eager model.
class Comparison {
 public:
  Comparison(EncoderDecoder& model, torch::jit::Module& loaded, const ExportOptions& options, ExportReport& report)
      : model_(model), loaded_(loaded), options_(options), report_(report) {}

  void logits(int64_t B, int64_t S, int64_t T) {
    S = std::min(S, model_.max_length());
    T = std::min(T, model_.max_length());
    const auto batch = batch_of(B, S, T);
    Forward run;
    const auto expected = model_.logits(batch, run);
    const auto got = loaded_.get_method("full")({batch.source_BS, batch.source_mask_BS, batch.target_BT}).toTensor();
    compare("full", expected, got, B, S, T);
    const auto memory = loaded_.get_method("encode")({batch.source_BS, batch.source_mask_BS});
    // One part at once, the rest token by token, as the model does it.
    const auto first = (T + 1) / 2;
    const auto stepper = model_.stepper(batch, run);
    auto by_model = stepper->step(batch.target_BT.slice(1, 0, first), run);
    auto after =
        loaded_.get_method("begin")({batch.target_BT.slice(1, 0, first), memory, batch.source_mask_BS}).toTuple();
    compare("begin", by_model, after->elements()[0].toTensor(), B, S, first);
    for (int64_t t = first; t < T; ++t) {
      const auto next = batch.target_BT.slice(1, t, t + 1);
      by_model = stepper->step(next, run);
      after = loaded_.get_method("step")({next, t, batch.source_mask_BS, after->elements()[1]}).toTuple();
      compare("step", by_model, after->elements()[0].toTensor(), B, S, t + 1);
    }
  }

  void translations(const std::vector<std::vector<int64_t>>& sources, int64_t beam) {
    constexpr std::size_t rows = 16;
    auto search = options_.search;
    search.beam = beam;
    search.n_best = 1;
    for (std::size_t from = 0; from < sources.size(); from += rows) {
      const std::vector<std::vector<int64_t>> part(sources.begin() + from,
                                                   sources.begin() + std::min(from + rows, sources.size()));
      Forward run;
      const auto expected = translate_ids(model_, part, options_.source, options_.target, search, 4096, run);
      std::size_t longest = 0;
      for (const auto& text : part) longest = std::max(longest, text.size());
      auto ids = torch::full({static_cast<int64_t>(part.size()), static_cast<int64_t>(longest)}, options_.source.pad,
                             torch::kLong);
      for (std::size_t i = 0; i < part.size(); ++i)
        std::copy(part[i].begin(), part[i].end(), ids.data_ptr<int64_t>() + i * longest);
      const auto got = loaded_
                           .get_method("translate_with_scores")(
                               {ids.to(model_.device()), beam, search.length_penalty, search.max_length})
                           .toTuple();
      const auto texts = got->elements()[0].toTensor().cpu().contiguous();
      const auto scores = got->elements()[1].toTensor().cpu();
      for (std::size_t i = 0; i < part.size(); ++i) {
        const auto row = texts[static_cast<int64_t>(i)];
        std::vector<int64_t> text(row.const_data_ptr<int64_t>(), row.const_data_ptr<int64_t>() + row.numel());
        while (!text.empty() && text.back() == options_.target.pad) text.pop_back();
        const auto score = scores[static_cast<int64_t>(i)].item<double>();
        const auto& best = expected[i].front();
        if (text != best.ids && std::abs(score - best.score) > tolerance() * std::max(1.0, std::abs(best.score)))
          throw Error("export: sentence " + std::to_string(from + i + 1) +
                      " is translated otherwise than by the model (beam " + std::to_string(beam) +
                      "): expected score " + std::to_string(best.score) + ", got " + std::to_string(score) +
                      "; nothing was written");
      }
    }
  }

  /// Random sentences of words that are no special ids, as far as there are such.
  std::vector<std::vector<int64_t>> random_sentences() const {
    std::vector<std::vector<int64_t>> all;
    for (const int64_t length : {1, 3, 7, 12, 20}) {
      if (length + 1 > model_.max_length()) continue;
      const auto ids = words(1, length).cpu();
      all.emplace_back(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + length);
    }
    return all;
  }

 private:
  Tensor words(int64_t B, int64_t T) const {
    const auto first = std::max({options_.source.pad, options_.source.eos, options_.target.pad, options_.target.bos,
                                 options_.target.eos}) +
                       1;
    const auto last = std::min(vocabulary_, model_.target_vocabulary());
    return torch::randint(std::min(first, last - 1), last, {B, T}, named_generator(1, "export" + std::to_string(T)),
                          torch::kLong)
        .to(model_.device());
  }

  Batch batch_of(int64_t B, int64_t S, int64_t T) const {
    const auto lengths = (S - torch::arange(B).mul(2)).clamp_min(1).to(model_.device());
    Batch batch;
    batch.source_BS = words(B, S);
    batch.source_mask_BS = torch::arange(S, lengths.options()).unsqueeze(0).lt(lengths.unsqueeze(1));
    batch.target_BT = words(B, T);
    return batch;
  }

  double tolerance() const { return export_tolerance(model_.dtype()); }

  void compare(const std::string& what, const Tensor& expected, const Tensor& got, int64_t B, int64_t S, int64_t T) {
    const auto where = "export: " + what + " at batch " + std::to_string(B) + ", source length " + std::to_string(S) +
                       ", target length " + std::to_string(T);
    report_.max_difference = std::max(report_.max_difference, compare_outputs(where, expected, got));
  }

  EncoderDecoder& model_;
  torch::jit::Module& loaded_;
  const ExportOptions& options_;
  ExportReport& report_;
  int64_t vocabulary_ = model_.source_vocabulary();
};

}  // namespace

ExportReport export_torchscript(Model& model, const std::filesystem::path& path, const ExportOptions& options) {
  if (!dynamic_cast<EncoderDecoder*>(&model))
    throw UsageError("export: expected a model of type encoder_decoder; no other can translate");
  // A copy, so that the model keeps its mode and its gradients.
  const auto copy = std::dynamic_pointer_cast<EncoderDecoder>(model.clone());
  copy->eval();
  copy->multiply_in(std::nullopt);
  for (auto& parameter : copy->parameters()) parameter.requires_grad_(false);
  const torch::NoGradGuard no_grad;
  auto written = copy;
  if (options.absorb) {
    written = std::dynamic_pointer_cast<EncoderDecoder>(copy->clone());
    absorb_maps(*written);
  }

  ExportReport report;
  report.path = path;
  std::stringstream archive;
  {
    const auto module = script_of(*written, options, report.no_text);
    torch::jit::ExtraFilesMap files(options.files.begin(), options.files.end());
    module.save(archive, files);
  }
  auto loaded = torch::jit::load(archive, copy->device());
  Comparison comparison(*copy, loaded, options, report);
  comparison.logits(1, 3, 4);
  comparison.logits(4, 11, 9);
  comparison.logits(2, 29, 31);
  auto sentences = comparison.random_sentences();
  sentences.insert(sentences.end(), options.sentences.begin(), options.sentences.end());
  for (const auto beam : {int64_t{1}, std::max<int64_t>(options.search.beam, 2)})
    comparison.translations(sentences, beam);
  report.sentences_compared = static_cast<int64_t>(sentences.size());

  const auto bytes = archive.str();
  write_file_atomically(path, bytes);
  report.bytes = static_cast<int64_t>(bytes.size());
  return report;
}

}  // namespace headlab
