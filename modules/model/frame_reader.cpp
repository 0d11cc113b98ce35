#include "modules/model/frame_reader.h"

#include "modules/tensor/tied.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

void lstm_rule(const LstmReaderOptions&, const FrameReaderAround& around) {
  if (around.width % 2 != 0)
    around.problems.add("d_model", "expected an even number, half of it for each direction of the encoder; got " +
                                       std::to_string(around.width));
}

void layers_rule(const LayersReaderOptions& options, const FrameReaderAround& around) {
  stack_rules(options, around.width, around.at, around.problems);
}

FrameEmbeddingOptions embedding_of(const LayersReaderOptions& options, const FrameReaderPlace& place) {
  FrameEmbeddingOptions embedding;
  embedding.frame_width = place.frame_width;
  embedding.max_length = place.max_length;
  embedding.position = options.position;
  return embedding;
}

}  // namespace

const FrameReaders& frame_readers() {
  static const FrameReaders registry =
      FrameReaders("frame_reader", "how a model that writes what frames say reads them")
          .entry<LstmReader, LstmReaderOptions>("lstm", "LSTMs to either side", "1804.08050")
          .rule(lstm_rule)
          .entry<LayersReader, LayersReaderOptions>("layers", "layers of attention, as of frame_encoder", "1706.03762")
          .rule(layers_rule);
  return registry;
}
const Catalogue& frame_reader_catalogue() { return frame_readers().catalogue(); }

void LayersReaderOptions::describe(Fields& fields) {
  StackOptions::describe(fields);
  fields.add("position", position, "positions added to what becomes of the frames");
  fields.add("norm", norm, "normalisation of each sublayer");
  fields.add("residual", residual, "where the norm stands");
}

LstmReader::LstmReader(const LstmReaderOptions& options, const FrameReaderPlace& place) {
  for (int64_t i = 0; i < options.layers; ++i)
    layers_.push_back(
        register_module("layer" + std::to_string(i),
                        std::make_shared<BiLstm>(i == 0 ? place.frame_width : place.width, place.width / 2)));
}

Tensor LstmReader::read(const Tensor& frames_BSF, const Tensor& mask_BS, Forward&) {
  auto h = frames_BSF;
  for (const auto& layer : layers_) h = layer->forward(h, mask_BS);
  return h;
}

int64_t LstmReader::flops(int64_t S) const {
  int64_t count = 0;
  for (const auto& layer : layers_) count += layer->flops(S);
  return count;
}

LayersReader::LayersReader(const LayersReaderOptions& options, const FrameReaderPlace& place) {
  embed =
      register_module("embed", std::make_shared<FrameEmbed>(embedding_of(options, place), place.width, place.dropout));
  const LayerStyle style{place.width, place.dropout, options.norm, options.residual, "element"};
  layers = register_module("stack", std::make_shared<LayerStack>(style, Stack::enc_self, options.parts(), place.kept));
  tie_modules(*this);
}

Tensor read_frames(FrameEmbed& embed, LayerStack& layers, const Tensor& frames_BSF, const Tensor& mask_BS,
                   Forward& run) {
  const auto positions = positions_of(frames_BSF.select(-1, 0).to(torch::kLong));
  StackCall call{.positions = positions,
                 .self = {},
                 .memory_BSD = {},
                 .cross = {},
                 .memory_positions = {},
                 .state = nullptr,
                 .run = run};
  call.self.key_mask_BS = call.self.query_mask_BT = mask_BS;
  return layers.forward(embed.forward(frames_BSF, positions), call);
}

Tensor LayersReader::read(const Tensor& frames_BSF, const Tensor& mask_BS, Forward& run) {
  return read_frames(*embed, *layers, frames_BSF, mask_BS, run);
}

}  // namespace headlab
