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
  // No size is read as a number, and no index made elsewhere: what is done here is recorded for export.
  const auto one_way = [&](const LstmCell& cell, const Tensor& x) {
    const auto start =
        torch::zeros_like(x.select(1, 0).slice(1, 0, 1)).expand({-1, cell.width()}).unsqueeze(0).contiguous();
    return std::get<0>(torch::lstm(x, {start, start}, cell.tensors(), true, 1, 0.0, is_training(), false, true));
  };
  // Backwards from each text's last place; what stands after it is read after all of the text.
  const auto places_S = torch::ones_like(x_BSI.select(0, 0).select(1, 0), torch::kLong).cumsum(0) - 1;
  const auto last_B1 = mask_BS.defined() ? mask_BS.sum(1, /*keepdim=*/true) - 1 : places_S.slice(0, -1).unsqueeze(0);
  const auto turned_BS1 = torch::where(places_S <= last_B1, last_B1 - places_S, places_S).unsqueeze(-1);
  const auto turned = [&](const Tensor& x) { return x.gather(1, turned_BS1.expand_as(x)); };
  const auto h = torch::cat({one_way(*forwards, x_BSI), turned(one_way(*backwards, turned(x_BSI)))}, -1);
  return mask_BS.defined() ? h.masked_fill(mask_BS.logical_not().unsqueeze(-1), 0) : h;
}

}  // namespace headlab
