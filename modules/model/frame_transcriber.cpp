#include "modules/model/frame_transcriber.h"

#include <limits>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// One token after another.
class TranscriberStepper : public Stepper {
 public:
  TranscriberStepper(FrameTranscriber& model, const Batch& batch)
      : model_(model), memory_(model.read(batch)), state_(model.start(memory_)) {}

  Tensor step(const Tensor& ids_BT, Forward& run) override {
    if (read_ + ids_BT.size(1) > model_.max_length())
      throw ShapeError("decoder: expected at most " + std::to_string(model_.max_length()) + " tokens, got " +
                       std::to_string(read_ + ids_BT.size(1)) + "; raise model.max_length");
    read_ += ids_BT.size(1);
    Tensor q;
    for (const auto& ids_B : ids_BT.unbind(1)) q = model_.step(ids_B, memory_, state_);
    return model_.logits_of(q, run);
  }
  void reorder(const Tensor& rows_B) override {
    memory_.reorder(rows_B);
    state_.reorder(rows_B);
  }
  int64_t max_length() const override { return model_.max_length(); }

 private:
  FrameTranscriber& model_;
  FrameTranscriber::Memory memory_;
  FrameTranscriber::State state_;
  int64_t read_ = 0;
};

}  // namespace

FrameTranscriberOptions::FrameTranscriberOptions() {
  for (const char* type : {"location", "location", "coverage", "coverage"}) heads.items.emplace_back(energy_catalogue, type);
}

void FrameTranscriberOptions::describe(Fields& fields) {
  fields.add("d_model", d_model, "width of the encoder's output, of symbols and of each decoder").at_least(2);
  fields.add("frame_width", frame_width, "numbers of a frame").at_least(1);
  fields.add("max_length", max_length, "longest text that the model takes, in frames and in symbols").at_least(1);
  fields.add("encoder_layers", encoder_layers, "LSTMs to either side, one on another").at_least(1);
  fields.add("heads", heads, "how each head scores what it looks at");
  fields.add("merge", merge, "where heads come together: head: before one decoder; decoder: each has its own, and their outputs are summed")
      .one_of({"head", "decoder"});
  fields.add("sharpen", sharpen, "factor of the scores before softmax").above(0);
  fields.add("ctc", ctc, "weight of the CTC loss of the encoder").at_least(0);
  fields.add("dropout", dropout, "on symbols that are read and on what the output sees").at_least(0).below(1);
}

void FrameTranscriberOptions::rules(Problems& problems) const {
  if (d_model % 2 != 0) problems.add("d_model", "expected an even number, half of it for each direction of the encoder; got " + std::to_string(d_model));
  if (heads.items.empty()) problems.add("heads", "expected at least one head");
}

void FrameTranscriber::State::reorder(const Tensor& rows_B) {
  for (auto* list : {&h, &c})
    for (auto& tensor : *list) tensor = tensor.index_select(0, rows_B);
  for (auto& one : looked) one = {one.last_BS.index_select(0, rows_B), one.sum_BS.index_select(0, rows_B)};
}

void FrameTranscriber::Memory::reorder(const Tensor& rows_B) {
  h_BSD = h_BSD.index_select(0, rows_B);
  mask_BS = mask_BS.index_select(0, rows_B);
  for (auto& one : keys) one = one.index_select(0, rows_B);
}

FrameTranscriber::FrameTranscriber(const FrameTranscriberOptions& options, const ModelContext& context)
    : options_(options), context_(context) {
  const auto D = options.d_model, N = static_cast<int64_t>(options.heads.items.size());
  for (int64_t i = 0; i < options.encoder_layers; ++i)
    encoder_.push_back(register_module("encoder" + std::to_string(i), std::make_shared<BiLstm>(i == 0 ? options.frame_width : D, D / 2)));
  for (int64_t n = 0; n < N; ++n)
    heads_.push_back(register_module("head" + std::to_string(n), energies().make(options.heads.items[static_cast<std::size_t>(n)], {D, D})));
  const auto decoders = options.merge == "head" ? 1 : N;
  for (int64_t n = 0; n < decoders; ++n)
    decoders_.push_back(register_module("decoder" + std::to_string(n), std::make_shared<LstmCell>(2 * D, D)));
  if (options.merge == "head") join = register_module("join", torch::nn::Linear(torch::nn::LinearOptions(N * D, D).bias(false)));
  tokens = register_module("tokens", std::make_shared<TokenTable>(context.target_vocabulary, D));
  output = register_module("output", torch::nn::Linear(decoders * D, context.target_vocabulary));
  if (options.ctc > 0) ctc_output = register_module("ctc_output", torch::nn::Linear(D, context.target_vocabulary));
}

FrameTranscriber::Memory FrameTranscriber::read(const Batch& batch) {
  auto h = frames_of(batch.side, batch.source_BS, options_.frame_width).to(output->weight.scalar_type());
  if (h.size(1) > options_.max_length)
    throw ShapeError("encoder: expected at most " + std::to_string(options_.max_length) + " frames, got " + std::to_string(h.size(1)) +
                     "; raise model.max_length");
  for (const auto& layer : encoder_) h = layer->forward(h, batch.source_mask_BS);
  Memory memory{h, batch.source_mask_BS, {}};
  if (!memory.mask_BS.defined()) memory.mask_BS = torch::ones({h.size(0), h.size(1)}, h.options().dtype(torch::kBool));
  for (const auto& head : heads_) memory.keys.push_back(head->keys(h));
  return memory;
}

FrameTranscriber::State FrameTranscriber::start(const Memory& memory) const {
  State state;
  const auto zeros = torch::zeros({memory.h_BSD.size(0), options_.d_model}, memory.h_BSD.options());
  state.h.assign(decoders_.size(), zeros);
  state.c = state.h;
  const auto real = memory.mask_BS.to(memory.h_BSD.scalar_type());
  state.looked.assign(heads_.size(), Looked{real / real.sum(1, /*keepdim=*/true), torch::zeros_like(real)});
  return state;
}

Tensor FrameTranscriber::step(const Tensor& ids_B, const Memory& memory, State& state) {
  const auto c_BD = torch::dropout(tokens->embed(ids_B, /*scale=*/true), options_.dropout, is_training());
  const bool apart = options_.merge == "decoder";
  const auto hidden = memory.mask_BS.logical_not();
  std::vector<Tensor> read;
  for (std::size_t n = 0; n < heads_.size(); ++n) {
    auto& looked = state.looked[n];
    const auto scores = heads_[n]->energy(memory.keys[n], state.h[apart ? n : 0], looked) * options_.sharpen;
    const auto weights = torch::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    read.push_back(torch::matmul(weights.unsqueeze(1), memory.h_BSD).squeeze(1));
    looked = {weights, looked.sum_BS + weights};
  }
  if (!apart) read = {join->forward(torch::cat(read, -1))};
  for (std::size_t n = 0; n < decoders_.size(); ++n)
    std::tie(state.h[n], state.c[n]) = decoders_[n]->step(torch::cat({c_BD, read[n]}, -1), state.h[n], state.c[n]);
  return torch::dropout(torch::cat(state.h, -1), options_.dropout, is_training());
}

Tensor FrameTranscriber::hidden(const Batch& batch, Forward& run) {
  run.side = batch.side;
  const auto memory = read(batch);
  auto state = start(memory);
  std::vector<Tensor> q;
  for (const auto& ids_B : batch.target_BT.unbind(1)) q.push_back(step(ids_B, memory, state));
  if (is_training() && options_.ctc > 0) add_ctc(memory, batch, run);
  return torch::stack(q, 1);
}

void FrameTranscriber::add_ctc(const Memory& memory, const Batch& batch, Forward& run) {
  const auto log_p = torch::log_softmax(ctc_output->forward(memory.h_BSD).to(torch::kFloat), -1).transpose(0, 1);
  const auto symbols_BT = batch.target_BT.slice(1, 1);
  const auto lengths = batch.target_mask_BT.defined() ? batch.target_mask_BT.slice(1, 1).sum(1)
                                                      : torch::full({symbols_BT.size(0)}, symbols_BT.size(1), symbols_BT.options());
  const auto loss = torch::ctc_loss(log_p, symbols_BT, memory.mask_BS.sum(1), lengths, /*blank=*/0, at::Reduction::Sum, /*zero_infinity=*/true);
  run.aux.push_back({"ctc", {Stack::enc_self, 0}, options_.ctc * loss, lengths.sum().to(loss.scalar_type()).clamp_min(1)});
}

Tensor FrameTranscriber::logits_of(const Tensor& hidden, Forward& run) {
  return run.see(At::logits, {Stack::dec_self, 0}, output->forward(hidden));
}

std::unique_ptr<Stepper> FrameTranscriber::stepper(const Batch& batch, Forward&) {
  return std::make_unique<TranscriberStepper>(*this, batch);
}

int64_t FrameTranscriber::flops(int64_t S, int64_t T) const {
  int64_t count = 0, a_step = 2 * output->weight.numel();
  for (const auto& layer : encoder_) count += layer->flops(S);
  for (const auto& head : heads_) {
    count += head->flops_once(S);
    a_step += head->flops(S) + 2 * S * options_.d_model;
  }
  for (const auto& decoder : decoders_) a_step += decoder->flops();
  if (join) a_step += 2 * join->weight.numel();
  return count + T * a_step;
}

std::shared_ptr<torch::nn::Module> FrameTranscriber::clone(const std::optional<torch::Device>& device) const {
  auto copy = std::make_shared<FrameTranscriber>(options_, context_);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
