#include "modules/recurrent/lstm.h"

#include <cmath>

#include "modules/tensor/torch.h"

namespace headlab {

LstmCell::LstmCell(int64_t in, int64_t width) {
  input_weight = register_parameter("input_weight", torch::empty({4 * width, in}));
  hidden_weight = register_parameter("hidden_weight", torch::empty({4 * width, width}));
  bias = register_parameter("bias", torch::zeros({4 * width}));
}

void LstmCell::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto bound = 1 / std::sqrt(static_cast<double>(width()));
  const auto fill = [&](Tensor& weight, const std::string& name) {
    weight.copy_(torch::empty(weight.sizes(), torch::kFloat64).uniform_(-bound, bound, generator(name)));
  };
  fill(input_weight, "input_weight");
  fill(hidden_weight, "hidden_weight");
  bias.zero_();
}

std::pair<Tensor, Tensor> LstmCell::step(const Tensor& x_BI, const Tensor& h_BU, const Tensor& c_BU) const {
  const auto [h, c] = torch::lstm_cell(x_BI, {h_BU, c_BU}, input_weight, hidden_weight, bias, torch::zeros_like(bias));
  return {h, c};
}

BiLstm::BiLstm(int64_t in, int64_t width) {
  forwards = register_module("forwards", std::make_shared<LstmCell>(in, width));
  backwards = register_module("backwards", std::make_shared<LstmCell>(in, width));
}

Tensor BiLstm::forward(const Tensor& x_BSI, const Tensor& mask_BS) const {
  const auto B = x_BSI.size(0), S = x_BSI.size(1), U = forwards->width();
  auto weights = forwards->tensors();
  for (const auto& tensor : backwards->tensors()) weights.push_back(tensor);
  const auto start = torch::zeros({2, B, U}, x_BSI.options());
  if (!mask_BS.defined())
    return std::get<0>(torch::lstm(x_BSI, {start, start}, weights, true, 1, 0.0, is_training(), true, /*batch_first=*/true));
  const auto [lengths, order] = mask_BS.sum(1).sort(0, /*descending=*/true);
  const auto [data, sizes] = torch::_pack_padded_sequence(x_BSI.index_select(0, order), lengths.cpu(), /*batch_first=*/true);
  const auto made = std::get<0>(torch::lstm(data, sizes, {start, start}, weights, true, 1, 0.0, is_training(), true));
  const auto sorted = std::get<0>(torch::_pad_packed_sequence(made, sizes, /*batch_first=*/true, 0.0, S));
  return sorted.index_select(0, order.argsort());
}

}  // namespace headlab
