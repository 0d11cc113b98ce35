#include "src/decode/best_path.h"

#include "modules/loss/ctc.h"
#include "modules/tensor/torch.h"

namespace headlab {

std::vector<std::vector<int64_t>> best_paths(const Tensor& log_p_BSV, const Tensor& mask_BS) {
  auto best_BS = log_p_BSV.argmax(-1);
  if (mask_BS.defined()) best_BS = best_BS.masked_fill(mask_BS.logical_not(), ctc_blank);
  best_BS = best_BS.to(torch::kCPU).contiguous();
  const auto* id = best_BS.const_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> texts(static_cast<std::size_t>(best_BS.size(0)));
  for (auto& text : texts) {
    auto before = ctc_blank;
    for (int64_t s = 0; s < best_BS.size(1); ++s, ++id) {
      if (*id != before && *id != ctc_blank) text.push_back(*id);
      before = *id;
    }
  }
  return texts;
}

}  // namespace headlab
