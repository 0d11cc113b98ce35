#pragma once

#include <algorithm>

#include "tests/support/models.h"

/// Small models that have something to say, and sentences for them. Their ids: pad 0, unk 1, bos 2, eos 3, words
/// from 4.
namespace headlab {

constexpr int64_t translator_vocabulary = 23;

/// Two layers of width 16 with 4 heads on each side, texts of up to 64 tokens; noise makes its choices clear-cut, as
/// training would. In evaluation mode.
inline std::shared_ptr<EncoderDecoder> translator(const std::function<void(EncoderDecoderOptions&)>& tweak = {},
                                                  uint64_t seed = 1) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.embedding.max_length = 64;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  if (tweak) tweak(options);
  auto model =
      std::make_shared<EncoderDecoder>(options, ModelContext{translator_vocabulary, translator_vocabulary, {}});
  fill(*model, 0.3, seed);
  model->eval();
  return model;
}

/// The same for one text.
inline std::shared_ptr<DecoderOnly> storyteller(const std::function<void(DecoderOnlyOptions&)>& tweak = {},
                                                uint64_t seed = 1) {
  DecoderOnlyOptions options;
  options.d_model = 16;
  options.embedding.max_length = 64;
  options.decoder.attention.heads = 4;
  if (tweak) tweak(options);
  auto model = std::make_shared<DecoderOnly>(options, ModelContext{0, translator_vocabulary, {}});
  fill(*model, 0.3, seed);
  model->eval();
  return model;
}

/// A sentence of each length, without eos.
inline std::vector<std::vector<int64_t>> sentences(const std::vector<int64_t>& lengths, uint64_t seed) {
  std::vector<std::vector<int64_t>> all;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    auto& sentence = all.emplace_back(static_cast<std::size_t>(lengths[i]));
    if (sentence.empty()) continue;
    const auto ids = torch::empty({lengths[i]}, torch::kLong)
                         .random_(4, translator_vocabulary, named_generator(seed, "sentence" + std::to_string(i)));
    std::copy_n(ids.const_data_ptr<int64_t>(), lengths[i], sentence.begin());
  }
  return all;
}

}  // namespace headlab
