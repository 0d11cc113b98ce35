#include "modules/model/encoder_decoder.h"
#include "modules/model/frame_ctc.h"
#include "modules/model/frame_encoder.h"
#include "modules/model/frame_transcriber.h"
#include "modules/model/single_stack.h"

namespace headlab {

const Models& models() {
  static const Models registry =
      Models("model", "a Transformer: ids to logits")
          .entry<EncoderDecoder, EncoderDecoderOptions>(
              "encoder_decoder", "an encoder of the source and a decoder that attends to it", "1706.03762")
          .entry<DecoderOnly, DecoderOnlyOptions>("decoder_only", "a causal language model")
          .entry<EncoderOnly, EncoderOnlyOptions>("encoder_only",
                                                  "a bidirectional encoder with an output at each position")
          .entry<FrameEncoder, FrameEncoderOptions>(
              "frame_encoder", "an encoder of frames of numbers, as of speech, with an output at each")
          .entry<FrameTranscriber, FrameTranscriberOptions>(
              "frame_transcriber", "recurrent networks that write what frames say, with several heads", "1804.08050")
          .entry<FrameCtc, FrameCtcOptions>("frame_ctc", "an encoder of frames that writes what they say by CTC alone",
                                            "10.1145/1143844.1143891");
  return registry;
}
const Catalogue& model_catalogue() { return models().catalogue(); }

}  // namespace headlab
