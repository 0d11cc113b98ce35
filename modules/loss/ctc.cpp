#include "modules/loss/ctc.h"

#include <vector>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

constexpr double never = -1e30;  // its differences and gradients are numbers, as those of -infinity are not
constexpr double least = -1e4, silent = -50;  // of what is next

}  // namespace

Tensor ctc_log_probabilities(const Tensor& logits) {
  const auto wide = logits.to(at_least_float(logits.scalar_type()));
  const auto silent = torch::full_like(wide.slice(-1, ctc_blank + 1, ctc_first_symbol), never);
  return torch::log_softmax(
      torch::cat({wide.slice(-1, 0, ctc_blank + 1), silent, wide.slice(-1, ctc_first_symbol)}, -1), -1);
}

Tensor ctc_nll(const Tensor& log_p_BSV, const Tensor& mask_BS, const Tensor& symbols_BT, const Tensor& lengths_B) {
  const auto frames_B = mask_BS.defined() ? mask_BS.sum(1) : torch::full_like(lengths_B, log_p_BSV.size(1));
  return torch::ctc_loss(log_p_BSV.transpose(0, 1), symbols_BT, frames_B, lengths_B, ctc_blank, at::Reduction::None,
                         /*zero_infinity=*/true);
}

Tensor ctc_next(const Tensor& log_p_BSV, const Tensor& mask_BS, const Tensor& ids_BT) {
  const auto B = ids_BT.size(0), T = ids_BT.size(1), S = log_p_BSV.size(1);
  const auto of_symbols_BST = log_p_BSV.gather(2, ids_BT.unsqueeze(1).expand({-1, S, -1}));
  const auto again_BT = ids_BT.slice(1, 1).eq(ids_BT.slice(1, 0, T - 1));  // equal ones need a blank between them
  const auto nothing_B1 = torch::full({B, 1}, never, log_p_BSV.options());
  // Of the paths of the frames so far that write the first t symbols: log p of those that end with a blank, and with
  // symbol t.
  auto blank_BT = torch::cat({torch::zeros_like(nothing_B1), nothing_B1.expand({-1, T - 1})}, 1);
  auto symbol_BT = nothing_B1.expand({-1, T});
  std::vector<Tensor> blanks, symbols;  // before each frame
  for (int64_t s = 0; s < S; ++s) {
    blanks.push_back(blank_BT);
    symbols.push_back(symbol_BT);
    const auto both_BT = torch::logaddexp(blank_BT, symbol_BT);
    const auto arrives = torch::where(again_BT, blank_BT.slice(1, 0, T - 1), both_BT.slice(1, 0, T - 1));
    auto next_blank = both_BT + log_p_BSV.select(1, s).slice(1, ctc_blank, ctc_blank + 1);
    auto next_symbol = torch::cat(
        {nothing_B1, torch::logaddexp(symbol_BT.slice(1, 1), arrives) + of_symbols_BST.select(1, s).slice(1, 1)}, 1);
    if (mask_BS.defined()) {
      const auto real_B1 = mask_BS.slice(1, s, s + 1);
      next_blank = torch::where(real_B1, next_blank, blank_BT);
      next_symbol = torch::where(real_B1, next_symbol, symbol_BT);
    }
    blank_BT = next_blank;
    symbol_BT = next_symbol;
  }
  auto blanks_BTS = torch::stack(blanks, 2), symbols_BTS = torch::stack(symbols, 2);
  if (mask_BS.defined()) {
    const auto padding_B1S = mask_BS.logical_not().unsqueeze(1);
    blanks_BTS = blanks_BTS.masked_fill(padding_B1S, never);
    symbols_BTS = symbols_BTS.masked_fill(padding_B1S, never);
  }
  // The symbol that follows is said for the first time at frame s, whatever comes after.
  const auto follows_BTSV = torch::logaddexp(blanks_BTS, symbols_BTS).unsqueeze(-1) + log_p_BSV.unsqueeze(1);
  const auto same_BT = (blanks_BTS + of_symbols_BST.transpose(1, 2)).logsumexp(2);
  auto all_BTV = follows_BTSV.logsumexp(2).scatter(2, ids_BT.unsqueeze(-1), same_BT.unsqueeze(-1));
  const auto ends_BT1 = torch::logaddexp(blank_BT, symbol_BT).unsqueeze(-1);
  const auto said = torch::log_softmax(torch::cat({ends_BT1, all_BTV.slice(2, ctc_first_symbol)}, 2), 2);
  return torch::cat({torch::full_like(all_BTV.slice(2, 0, ctc_end), silent), said.clamp_min(least)}, 2);
}

}  // namespace headlab
