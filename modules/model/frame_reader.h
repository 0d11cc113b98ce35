#pragma once

#include "modules/embedding/frames.h"
#include "modules/layer/stack.h"
#include "modules/model/model.h"
#include "modules/recurrent/lstm.h"

namespace headlab {

/// Where an encoder of frames stands in a model that writes.
struct FrameReaderPlace {
  int64_t frame_width = 0, width = 0, max_length = 0;
  double dropout = 0;
  HeadTable kept = {};  // of enc.self, as ModelContext's
};

/// The same in a spec, for the rules of its entries.
struct FrameReaderAround : Around {
  int64_t width = 0;
  FrameReaderAround(int64_t width, Problems& problems) : Around("encoder", problems), width(width) {}
};

/// What a model that writes has heard: frames_BSF -> h_BSD.
struct FrameReader : torch::nn::Module {
  /// mask_BS: bool, true first: the real frames; undefined: all are. What stands at others changes nothing of the real.
  virtual Tensor read(const Tensor& frames_BSF, const Tensor& mask_BS, Forward& run) = 0;
  virtual std::vector<std::pair<Site, Mixer*>> mixers() const { return {}; }
  virtual int64_t flops(int64_t S) const = 0;
};
using FrameReaders = Registry<FrameReader, const FrameReaderPlace&>;
const FrameReaders& frame_readers();
const Catalogue& frame_reader_catalogue();

struct LstmReaderOptions : Described<LstmReaderOptions> {
  int64_t layers = 1;
  void describe(Fields& fields) override { fields.add("layers", layers, "one on another").at_least(1); }
};

/// LSTMs to either side, each of width D/2, one layer on another.
class LstmReader : public FrameReader {
 public:
  LstmReader(const LstmReaderOptions& options, const FrameReaderPlace& place);
  Tensor read(const Tensor& frames_BSF, const Tensor& mask_BS, Forward& run) override;
  int64_t flops(int64_t S) const override;

 private:
  std::vector<std::shared_ptr<BiLstm>> layers_;
};

struct LayersReaderOptions : StackOptions {
  Choice position{added_position_catalogue, "sinusoidal"};
  Choice norm{norm_catalogue, "layer_norm"};
  Choice residual{residual_catalogue, "pre"};
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<LayersReaderOptions>(*this); }
};

/// h_BSD of frames [B,S,F] by layers of attention that see both sides; mask_BS: true: a frame; undefined: all are.
Tensor read_frames(FrameEmbed& embed, LayerStack& layers, const Tensor& frames_BSF, const Tensor& mask_BS,
                   Forward& run);

/// The stack of layers of frame_encoder, whose heads are those of enc.self.
class LayersReader : public FrameReader {
 public:
  LayersReader(const LayersReaderOptions& options, const FrameReaderPlace& place);
  Tensor read(const Tensor& frames_BSF, const Tensor& mask_BS, Forward& run) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return layers->mixers(); }
  int64_t flops(int64_t S) const override { return embed->flops(S) + layers->flops(S, 0, false); }

 private:
  std::shared_ptr<FrameEmbed> embed{nullptr};
  std::shared_ptr<LayerStack> layers{nullptr};
};

}  // namespace headlab
