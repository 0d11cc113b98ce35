#include "src/heads/score/confidence.h"

#include "modules/attention/project/persistent.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/heads/head_set.h"
#include "tests/catch.h"
#include "tests/support/taps.h"
#include "tests/support/tasks.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

/// A toy task whose texts end: the last id of each is eos.
class EndedTask : public ToyTask {
 public:
  using ToyTask::ToyTask;
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override {
    auto batch = ToyTask::collect(split, examples, device);
    const auto mask = batch.inputs.source_mask_BS;
    for (std::size_t b = 0; b < examples.size(); ++b) {
      const auto row = static_cast<int64_t>(b);
      const auto length = mask.defined() ? mask[row].sum().item<int64_t>() : batch.inputs.source_BS.size(1);
      batch.inputs.source_BS[row][length - 1] = TextIds().eos;
    }
    return batch;
  }
};

/// The toy model, of which each head has `vectors` persistent ones.
std::shared_ptr<EncoderDecoder> with_persistent(const ToyTask& task, int64_t vectors) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  for (auto* attention : {&options.encoder.attention, &options.decoder.attention, &options.decoder.cross_attention}) {
    attention->heads = 4;
    attention->then.items.emplace_back(adapter_catalogue, "persistent");
    attention->then.items.back().as<PersistentOptions>().vectors = vectors;
  }
  return std::make_shared<EncoderDecoder>(options, task.context());
}

}  // namespace

TEST_CASE("confidence is the mean of the largest weights, without padding and ends of text, by loops",
          "[heads][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const EndedTask task({5, 7, 4});
  for (const int64_t vectors : {0, 3}) {  // learned keys are no tokens
    auto model = vectors == 0 ? toy_model(task) : with_persistent(task, vectors);
    fill(*model, 0.5);
    model->keep(without(model->heads(), parse_heads({"dec.cross.1.0"})));
    ConfidenceOptions options;
    const auto scores = ConfidenceScorer(options).score(*model, task, 0);
    CHECK(scores.heads.size() == 23);

    model->eval();
    const auto batch = task.batch("valid", {0, 1, 2}, torch::kCPU);
    Seen seen(At::weights);
    Forward run;
    run.taps = {&seen};
    model->hidden(batch.inputs, run);
    const std::vector<int64_t> lengths{5, 7, 4};
    for (const auto& [site, mixer] : model->mixers()) {
      const auto weights = seen.of.at(site).slice(-1, vectors);
      for (std::size_t i = 0; i < mixer->heads().size(); ++i) {
        double sum = 0;
        int64_t tokens = 0;
        for (int64_t b = 0; b < 3; ++b) {
          const auto length = lengths[static_cast<std::size_t>(b)];
          const auto counts = [&](int64_t token) {
            return batch.inputs.source_BS[b][token].item<int64_t>() != TextIds().eos;
          };  // the target too
          for (int64_t t = 0; t < length; ++t) {
            if (!counts(t)) continue;
            double largest = 0;
            for (int64_t s = 0; s < length; ++s)
              if (counts(s)) largest = std::max(largest, weights[b][static_cast<int64_t>(i)][t][s].item<double>());
            sum += largest;
            ++tokens;
          }
        }
        CHECK(scores.heads.at({site.stack, site.layer, mixer->heads()[i]}) ==
              Catch::Detail::Approx(sum / static_cast<double>(tokens)));
      }
    }
  }
}

TEST_CASE("confidence of a routed attention is refused with its place", "[heads][paper-22]") {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.layers = options.decoder.layers = 1;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  options.encoder.attention.project.choose("experts");
  options.encoder.attention.mix.choose("experts");
  options.encoder.attention.gates.items = {Choice(gate_catalogue, "route_experts")};
  const ToyTask task({5});
  auto model = std::make_shared<EncoderDecoder>(options, task.context());
  initialise(*model, 5);
  CHECK_THROWS_WITH(ConfidenceScorer(ConfidenceOptions()).score(*model, task, 0),
                    ContainsSubstring("confidence: enc.self.0 routes tokens to heads"));
}

}  // namespace headlab
