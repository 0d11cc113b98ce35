#include "modules/mixer/attention_in.h"

#include "modules/mixer/ngram_and_attention.h"
#include "modules/tensor/torch.h"

namespace headlab {

const Attention* attention_in(const Mixer& mixer) {
  if (const auto* both = dynamic_cast<const NgramAndAttention*>(&mixer)) return &both->of_attention();
  return dynamic_cast<const Attention*>(&mixer);
}

}  // namespace headlab
