#pragma once

#include "modules/embedding/frames.h"
#include "modules/model/model.h"
#include "modules/recurrent/energy.h"
#include "modules/recurrent/lstm.h"

namespace headlab {

struct FrameTranscriberOptions : Described<FrameTranscriberOptions>, ModelOptions {
  int64_t frame_width = 12, max_length = 512, encoder_layers = 1;
  Choices heads{energy_catalogue, false, {}};
  std::string merge = "decoder";
  double sharpen = 2.0, ctc = 0.0;
  FrameTranscriberOptions();
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Frames to symbols by recurrent networks with several heads          (1804.08050)
///   encoder   h_BSD, `encoder_layers` LSTMs to either side, each of width D/2
///   head n    a_l^n = softmax(sharpen * e^n(h, q_{l-1}^n, a_{l-1}^n, sum of a^n)),  r_l^n = sum_s a_ls^n h_s
///   merge "head" (MHA)     q_l = LSTM(c_{l-1}, W_O [r_l^1; ...; r_l^N]),  all q^n are q;  logits = W q_l + b
///   merge "decoder" (MHD)  q_l^n = LSTM^n(c_{l-1}, r_l^n),  logits = sum_n W^n q_l^n + b, one map of [q_l^1; ...; q_l^N]
/// c the embedding of the symbol before. Heads of different energies are the paper's HMHD. q, c and LSTMs are D wide and start at
/// zeros. Dropout: on c and on q before the output.
///
/// `ctc` > 0 adds, in training, ctc * -log p(symbols | h) of a linear map of h to the vocabulary, the blank being id 0
/// (10.1145/1143844.1143891), as the loss "ctc", a mean over symbols. The symbols are those that the decoder reads after bos.
/// Heads can't be removed or scaled: they are no mixers of tokens in a stack. Products stay as wide as the parameters, since
/// LibTorch's LSTMs take one type.
class FrameTranscriber : public Model {
 public:
  /// What goes on from step to step.
  struct State {
    std::vector<Tensor> h, c;           // of each LSTM, [B,D]
    std::vector<Looked> looked;         // of each head
    void reorder(const Tensor& rows_B);
  };
  /// What is made once a text.
  struct Memory {
    Tensor h_BSD, mask_BS;
    std::vector<Tensor> keys;  // of each head
    void reorder(const Tensor& rows_B);
  };

  FrameTranscriber(const FrameTranscriberOptions& options, const ModelContext& context);
  Tensor hidden(const Batch& batch, Forward& run) override;
  Tensor logits_of(const Tensor& hidden, Forward& run) override;
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return {}; }
  int64_t max_length() const override { return options_.max_length; }
  int64_t target_vocabulary() const override { return tokens->vocabulary(); }
  int64_t flops(int64_t S, int64_t T) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

  Memory read(const Batch& batch);
  State start(const Memory& memory) const;
  /// Reads ids_B and returns what the output sees: q_l, or [q_l^1; ...; q_l^N].
  Tensor step(const Tensor& ids_B, const Memory& memory, State& state);
  int64_t frame_width() const { return options_.frame_width; }

 private:
  void add_ctc(const Memory& memory, const Batch& batch, Forward& run);
  FrameTranscriberOptions options_;
  ModelContext context_;
  std::vector<std::shared_ptr<BiLstm>> encoder_;
  std::vector<std::shared_ptr<Energy>> heads_;
  std::vector<std::shared_ptr<LstmCell>> decoders_;
  std::shared_ptr<TokenTable> tokens{nullptr};
  torch::nn::Linear join{nullptr}, output{nullptr}, ctc_output{nullptr};
};

}  // namespace headlab
