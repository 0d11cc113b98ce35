#include "modules/model/frame_ctc.h"

#include "modules/loss/ctc.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Prefixes of texts, weighed anew at each step: the frames are what takes time, not the symbols.
class PrefixStepper : public Stepper {
 public:
  PrefixStepper(FrameCtc& model, const Batch& batch, Forward& run) : model_(model) {
    const auto heard = model.read(batch, run);
    log_p_BSV_ = model.frame_log_probabilities(heard);
    mask_BS_ = heard.mask_BS;
  }
  Tensor step(const Tensor& ids_BT, Forward& run) override {
    ids_BT_ = ids_BT_.defined() ? torch::cat({ids_BT_, ids_BT}, 1) : ids_BT;
    if (ids_BT_.size(1) > max_length())
      throw ShapeError("frame_ctc: expected at most " + std::to_string(max_length()) + " symbols, got " +
                       std::to_string(ids_BT_.size(1)) + "; raise model.max_length");
    return model_.logits_of(ctc_next(log_p_BSV_, mask_BS_, ids_BT_).select(1, -1), run);
  }
  void reorder(const Tensor& rows_B) override {
    for (auto* tensor : {&log_p_BSV_, &mask_BS_, &ids_BT_})
      if (tensor->defined()) *tensor = tensor->index_select(0, rows_B);
  }
  int64_t max_length() const override { return model_.max_length(); }

 private:
  FrameCtc& model_;
  Tensor log_p_BSV_, mask_BS_, ids_BT_;
};

}  // namespace

FrameCtc::FrameCtc(const FrameCtcOptions& options, const ModelContext& context)
    : FrameWriter(options, context, /*ctc=*/true), options_(options) {}

Tensor FrameCtc::hidden(const Batch& batch, Forward& run) {
  auto heard = read(batch, run);
  heard.h_BSD = torch::dropout(heard.h_BSD, options_.dropout, is_training());
  return ctc_next(frame_log_probabilities(heard), heard.mask_BS, batch.target_BT);
}

Tensor FrameCtc::logits_of(const Tensor& hidden, Forward& run) {
  return run.see(At::logits, {Stack::dec_self, 0}, hidden);
}

std::unique_ptr<Stepper> FrameCtc::stepper(const Batch& batch, Forward& run) {
  return std::make_unique<PrefixStepper>(*this, batch, run);
}

int64_t FrameCtc::flops(int64_t S, int64_t) const { return reader->flops(S) + 2 * S * ctc_output->weight.numel(); }

std::shared_ptr<torch::nn::Module> FrameCtc::clone(const std::optional<torch::Device>& device) const {
  auto context = context_;
  context.kept = heads();
  auto copy = std::make_shared<FrameCtc>(options_, context);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
