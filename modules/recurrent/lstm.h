#pragma once

#include "modules/tensor/init.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// The weights of one LSTM: i, f, g, o = x W^T + b + h U^T; c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o)
/// tanh(c'). W [4U,I], U [4U,U], b [4U]. All start uniform in +-1/sqrt(U), the bias at 0.
class LstmCell : public torch::nn::Module, public Initialised {
 public:
  LstmCell(int64_t in, int64_t width);
  /// x_BI and {h_BU, c_BU} -> {h_BU, c_BU}
  std::pair<Tensor, Tensor> step(const Tensor& x_BI, const Tensor& h_BU, const Tensor& c_BU) const;
  /// Of one step.
  int64_t flops() const { return 2 * (input_weight.numel() + hidden_weight.numel()); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;
  int64_t width() const { return hidden_weight.size(1); }
  /// {W, U, b, 0}, as LibTorch's LSTM takes them.
  std::vector<Tensor> tensors() const { return {input_weight, hidden_weight, bias, torch::zeros_like(bias)}; }

 private:
  Tensor input_weight, hidden_weight, bias;
};

/// An LSTM to either side: x_BSI -> [B,S,2U], forwards and backwards beside each other. mask_BS (bool, true first): the
/// real places; the others give zeros, and what stands there changes nothing. Undefined: all are real.
class BiLstm : public torch::nn::Module {
 public:
  BiLstm(int64_t in, int64_t width);
  Tensor forward(const Tensor& x_BSI, const Tensor& mask_BS) const;
  int64_t flops(int64_t S) const { return S * (forwards->flops() + backwards->flops()); }

 private:
  std::shared_ptr<LstmCell> forwards{nullptr}, backwards{nullptr};
};

}  // namespace headlab
