#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "modules/tensor/torch.h"

/// Attention written out as loops over double numbers, from the formulas of 1706.03762 (section 3.2) and 2104.09864, to
/// hold the walk to. It shares nothing with modules/: no kernels, no masks as tensors, one head and one query at a
/// time.
namespace headlab::reference {

using torch::Tensor;

inline Tensor in_double(const Tensor& x) { return x.detach().to(torch::kFloat64).contiguous(); }

/// [B,n,T,K] of the numbers that `of` gives, one at a time.
inline Tensor each(at::IntArrayRef sizes, const std::function<double(int64_t b, int64_t n, int64_t t, int64_t i)>& of) {
  auto y = torch::zeros(sizes, torch::kFloat64);
  auto ys = y.accessor<double, 4>();
  for (int64_t b = 0; b < y.size(0); ++b)
    for (int64_t n = 0; n < y.size(1); ++n)
      for (int64_t t = 0; t < y.size(2); ++t)
        for (int64_t i = 0; i < y.size(3); ++i) ys[b][n][t][i] = of(b, n, t, i);
  return y;
}

/// Rows h*K .. h*K+K-1 of `weight` [n*K, D] make unit h: x_BTD -> [B,n,T,K]. bias [n*K] may be undefined.
inline Tensor project(const Tensor& x_BTD, const Tensor& weight, const Tensor& bias, int64_t K) {
  const auto x = in_double(x_BTD), w = in_double(weight),
             c = bias.defined() ? in_double(bias) : torch::zeros({w.size(0)}, torch::kFloat64);
  const auto xs = x.accessor<double, 3>();
  const auto ws = w.accessor<double, 2>();
  const auto cs = c.accessor<double, 1>();
  return each({x.size(0), w.size(0) / K, x.size(1), K}, [&](int64_t b, int64_t h, int64_t t, int64_t i) {
    double sum = cs[h * K + i];
    for (int64_t d = 0; d < x.size(2); ++d) sum += xs[b][t][d] * ws[h * K + i][d];
    return sum;
  });
}

/// Turns the pair (2i, 2i+1) of each token by its place times base^(-2i/K).
inline Tensor rotate(const Tensor& x_BHTK, double base) {
  auto y = x_BHTK.clone();
  const auto xs = x_BHTK.accessor<double, 4>();
  auto ys = y.accessor<double, 4>();
  for (int64_t b = 0; b < y.size(0); ++b)
    for (int64_t h = 0; h < y.size(1); ++h)
      for (int64_t t = 0; t < y.size(2); ++t)
        for (int64_t i = 0; i + 1 < y.size(3); i += 2) {
          const double angle =
              static_cast<double>(t) * std::pow(base, -static_cast<double>(i) / static_cast<double>(y.size(3)));
          ys[b][h][t][i] = xs[b][h][t][i] * std::cos(angle) - xs[b][h][t][i + 1] * std::sin(angle);
          ys[b][h][t][i + 1] = xs[b][h][t][i] * std::sin(angle) + xs[b][h][t][i + 1] * std::cos(angle);
        }
  return y;
}

/// Whether key s is visible to query t of head h in example b.
using Sees = std::function<bool(int64_t b, int64_t h, int64_t t, int64_t s)>;

inline Sees everything() {
  return [](int64_t, int64_t, int64_t, int64_t) { return true; };
}

/// Itself and what stands before it.
inline Sees up_to_itself() {
  return [](int64_t, int64_t, int64_t t, int64_t s) { return s <= t; };
}

/// The score of query t of head h and key s in example b.
using Scores = std::function<double(int64_t b, int64_t h, int64_t t, int64_t s)>;

/// z_h = sum_s softmax_s(score_h(t, s)) v_s over the visible keys, for T queries of each head; zeros where none is.
inline Tensor weigh_by(const Scores& scores, int64_t T, const Tensor& v_BGSK, const std::vector<int64_t>& group_of,
                       const Sees& sees) {
  const auto v = v_BGSK.accessor<double, 4>();
  const auto B = v_BGSK.size(0), H = static_cast<int64_t>(group_of.size()), S = v_BGSK.size(2), K = v_BGSK.size(3);
  auto z = torch::zeros({B, H, T, K}, torch::kFloat64);
  auto zs = z.accessor<double, 4>();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t) {
        std::vector<double> score(S, -std::numeric_limits<double>::infinity());
        double largest = -std::numeric_limits<double>::infinity();
        for (int64_t s = 0; s < S; ++s)
          if (sees(b, h, t, s)) largest = std::max(largest, score[s] = scores(b, h, t, s));
        if (std::isinf(largest)) continue;
        double sum = 0;
        for (auto& one : score) sum += one = std::exp(one - largest);
        for (int64_t s = 0; s < S; ++s)
          for (int64_t i = 0; i < K; ++i) zs[b][h][t][i] += score[s] / sum * v[b][group_of[h]][s][i];
      }
  return z;
}

/// factor q_h k_s, h's keys being those of its group.
inline Scores dot_products(const Tensor& q_BHTK, const Tensor& k_BGSK, const std::vector<int64_t>& group_of,
                           double factor) {
  return [=](int64_t b, int64_t h, int64_t t, int64_t s) {
    const auto q = q_BHTK.accessor<double, 4>();
    const auto k = k_BGSK.accessor<double, 4>();
    double sum = 0;
    for (int64_t i = 0; i < q_BHTK.size(3); ++i) sum += factor * q[b][h][t][i] * k[b][group_of[h]][s][i];
    return sum;
  };
}

inline Tensor weigh(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                    const std::vector<int64_t>& group_of, double factor, const Sees& sees) {
  return weigh_by(dot_products(q_BHTK, k_BGSK, group_of, factor), q_BHTK.size(2), v_BGSK, group_of, sees);
}

/// y = sum_h z_h W_O^h + bias; weight [D, H*K], bias [D] may be undefined.
inline Tensor concatenate(const Tensor& z_BHTK, const Tensor& weight, const Tensor& bias) {
  const auto w = in_double(weight), c = bias.defined() ? in_double(bias) : torch::zeros({w.size(0)}, torch::kFloat64);
  const auto z = z_BHTK.accessor<double, 4>();
  const auto ws = w.accessor<double, 2>();
  const auto cs = c.accessor<double, 1>();
  const auto H = z_BHTK.size(1), K = z_BHTK.size(3);
  auto y = torch::zeros({z_BHTK.size(0), z_BHTK.size(2), w.size(0)}, torch::kFloat64);
  auto ys = y.accessor<double, 3>();
  for (int64_t b = 0; b < y.size(0); ++b)
    for (int64_t t = 0; t < y.size(1); ++t)
      for (int64_t d = 0; d < y.size(2); ++d) {
        ys[b][t][d] = cs[d];
        for (int64_t h = 0; h < H; ++h)
          for (int64_t i = 0; i < K; ++i) ys[b][t][d] += z[b][h][t][i] * ws[d][h * K + i];
      }
  return y;
}

/// z_h -> factor_h z_h.
inline Tensor scale(const Tensor& z_BHTK, const std::vector<double>& factor_H) {
  auto y = z_BHTK.clone();
  for (int64_t h = 0; h < y.size(1); ++h) y.select(1, h).mul_(factor_H[h]);
  return y;
}

}  // namespace headlab::reference
