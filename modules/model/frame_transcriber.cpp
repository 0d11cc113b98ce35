#include "modules/model/frame_transcriber.h"

#include "modules/loss/ctc.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

const Site heads_site{Stack::dec_cross, 0};

/// One token after another.
class TranscriberStepper : public Stepper {
 public:
  TranscriberStepper(FrameTranscriber& model, const Batch& batch, Forward& run)
      : model_(model), mask_BS_(batch.source_mask_BS), state_(model.start(model.read(batch, run), run)) {}

  Tensor step(const Tensor& ids_BT, Forward& run) override {
    if (read_ + ids_BT.size(1) > model_.max_length())
      throw ShapeError("decoder: expected at most " + std::to_string(model_.max_length()) + " tokens, got " +
                       std::to_string(read_ + ids_BT.size(1)) + "; raise model.max_length");
    const auto said = model_.decode(ids_BT, {{}, mask_BS_}, {}, &state_, run, read_);
    read_ += ids_BT.size(1);
    return model_.logits_of(said.select(1, -1), run);
  }
  void reorder(const Tensor& rows_B) override {
    state_.reorder(rows_B);
    if (mask_BS_.defined()) mask_BS_ = mask_BS_.index_select(0, rows_B);
  }
  int64_t max_length() const override { return model_.max_length(); }

 private:
  FrameTranscriber& model_;
  Tensor mask_BS_;
  State state_;
  int64_t read_ = 0;
};

/// The heads of dec.cross to make; nullopt: all.
std::optional<std::vector<int64_t>> kept_heads(const ModelContext& context) {
  const auto found = context.kept.find(heads_site.stack);
  if (found == context.kept.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

}  // namespace

FrameTranscriberOptions::FrameTranscriberOptions() {
  for (const char* type : {"location", "location", "coverage", "coverage"})
    heads.items.emplace_back(energy_catalogue, type);
}

void FrameTranscriberOptions::describe(Fields& fields) {
  describe_reading(fields, "on symbols that are read, on what the output sees, and within the encoder's layers");
  fields.add("heads", heads, "how each head scores what it looks at");
  fields.add("merge", merge, "where heads come together");
  fields.add("sharpen", sharpen, "factor of the scores before softmax").above(0);
  fields.add("ctc", ctc, "weight of the CTC loss of the encoder").at_least(0);
}

void FrameTranscriberOptions::rules(Problems& problems) const {
  reading_rules(problems);
  if (heads.items.empty()) problems.add("heads", "expected at least one head");
}

FrameTranscriber::FrameTranscriber(const FrameTranscriberOptions& options, const ModelContext& context)
    : FrameWriter(options, context, options.ctc > 0), options_(options) {
  const DecoderPlace place{options.d_model, context.target_vocabulary, options.heads,
                           options.sharpen, options.dropout,           kept_heads(context)};
  tokens = register_module("tokens", std::make_shared<TokenTable>(context.target_vocabulary, options.d_model));
  decoder = register_module("decoder", merges().make(options.merge, place));
}

std::vector<std::pair<Site, Mixer*>> FrameTranscriber::mixers() const {
  auto all = FrameWriter::mixers();
  all.emplace_back(heads_site, decoder.get());
  return all;
}

AttentionCall FrameTranscriber::call_of(const Heard& heard, Forward& run) const {
  AttentionCall call{.site = heads_site,
                     .x_BTD = {},
                     .memory_BSD = heard.h_BSD,
                     .q_pos = {},
                     .k_pos = {},
                     .see = {},
                     .state = nullptr,
                     .run = run};
  call.see.key_mask_BS = heard.mask_BS;
  return call;
}

State FrameTranscriber::start(const Heard& heard, Forward& run) { return decoder->start(call_of(heard, run)); }

Tensor FrameTranscriber::decode(const Tensor& target_BT, const Heard& heard, const Tensor& query_mask_BT, State* state,
                                Forward& run, int64_t past) {
  auto call = call_of(heard, run);
  call.x_BTD = torch::dropout(tokens->embed(target_BT, /*scale=*/true), options_.dropout, is_training());
  call.q_pos = positions_of(target_BT, past);
  call.see.query_mask_BT = query_mask_BT;
  call.state = state;
  return decoder->forward(call);
}

Tensor FrameTranscriber::hidden(const Batch& batch, Forward& run) {
  const auto heard = read(batch, run);
  const auto said = decode(batch.target_BT, heard, batch.target_mask_BT, nullptr, run);
  if (is_training() && has_ctc()) add_ctc(heard, batch, run);
  return said;
}

void FrameTranscriber::add_ctc(const Heard& heard, const Batch& batch, Forward& run) {
  const auto symbols_BT = batch.target_BT.slice(1, 1);
  const auto lengths_B = batch.target_mask_BT.defined()
                             ? batch.target_mask_BT.slice(1, 1).sum(1)
                             : torch::full({symbols_BT.size(0)}, symbols_BT.size(1), symbols_BT.options());
  const auto loss = ctc_nll(frame_log_probabilities(heard), heard.mask_BS, symbols_BT, lengths_B).sum();
  run.aux.push_back(
      {"ctc", {Stack::enc_self, 0}, options_.ctc * loss, lengths_B.sum().to(loss.scalar_type()).clamp_min(1)});
}

Tensor FrameTranscriber::logits_of(const Tensor& hidden, Forward& run) {
  return run.see(At::logits, {Stack::dec_self, 0}, decoder->logits(hidden));
}

std::unique_ptr<Stepper> FrameTranscriber::stepper(const Batch& batch, Forward& run) {
  return std::make_unique<TranscriberStepper>(*this, batch, run);
}

int64_t FrameTranscriber::flops(int64_t S, int64_t T) const {
  return reader->flops(S) + decoder->flops(T, S, /*causal=*/false);
}

std::shared_ptr<torch::nn::Module> FrameTranscriber::clone(const std::optional<torch::Device>& device) const {
  auto context = context_;
  context.kept = heads();
  auto copy = std::make_shared<FrameTranscriber>(options_, context);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
