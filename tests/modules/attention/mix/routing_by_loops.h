#pragma once

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "modules/tensor/torch.h"

/// Routings of one token's votes [I,J,C], as their papers write them, number by number.
namespace headlab::reference {

struct Found {
  torch::Tensor capsules_JC, couplings_IJ;
};

inline double at(const torch::Tensor& x, std::vector<int64_t> place) {
  auto one = x.detach().to(torch::kFloat64);
  for (auto i : place) one = one[i];
  return one.item<double>();
}

inline Found found_of(const std::vector<std::vector<double>>& capsules,
                      const std::vector<std::vector<double>>& couplings) {
  const auto tensor = [](const std::vector<std::vector<double>>& rows) {
    std::vector<torch::Tensor> all;
    for (const auto& row : rows) all.push_back(torch::tensor(row, torch::kFloat64));
    return torch::stack(all);
  };
  return {tensor(capsules), tensor(couplings)};
}

/// `mean`: capsules are divided by the sum of their couplings; `squash`: they are squashed.
inline Found dynamic_routing(const torch::Tensor& votes, int64_t rounds, bool mean, bool squash) {
  const auto I = votes.size(0), J = votes.size(1), C = votes.size(2);
  std::vector<std::vector<double>> b(I, std::vector<double>(J, 0)), c = b, v(J, std::vector<double>(C));
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t i = 0; i < I; ++i) {
      double all = 0;
      for (int64_t j = 0; j < J; ++j) all += std::exp(b[i][j]);
      for (int64_t j = 0; j < J; ++j) c[i][j] = std::exp(b[i][j]) / all;
    }
    for (int64_t j = 0; j < J; ++j) {
      double coupled = 0, length = 0;
      for (int64_t i = 0; i < I; ++i) coupled += c[i][j];
      for (int64_t k = 0; k < C; ++k) {
        v[j][k] = 0;
        for (int64_t i = 0; i < I; ++i) v[j][k] += c[i][j] * at(votes, {i, j, k});
        if (mean) v[j][k] /= coupled;
        length += v[j][k] * v[j][k];
      }
      if (squash)
        for (auto& x : v[j]) x *= length / (1 + length) / std::sqrt(length);
    }
    if (round + 1 == rounds) break;
    for (int64_t i = 0; i < I; ++i)
      for (int64_t j = 0; j < J; ++j)
        for (int64_t k = 0; k < C; ++k) b[i][j] += at(votes, {i, j, k}) * v[j][k];
  }
  return found_of(v, c);
}

/// Normal densities, without logarithms: for votes of ordinary size.
inline Found em_routing(const torch::Tensor& votes, int64_t rounds, double floor,
                        const std::function<double(int64_t round)>& lambda, const torch::Tensor& activate_J,
                        const torch::Tensor& cost_J, double times, double constant) {
  const auto I = votes.size(0), J = votes.size(1), C = votes.size(2);
  std::vector<std::vector<double>> R(I, std::vector<double>(J, 1.0 / static_cast<double>(J))),
      mean(J, std::vector<double>(C)), out = mean;
  for (int64_t round = 1;; ++round) {
    auto variance = mean;
    std::vector<double> active(J);
    for (int64_t j = 0; j < J; ++j) {
      double S = 0, logs = 0;
      for (int64_t i = 0; i < I; ++i) S += R[i][j];
      for (int64_t k = 0; k < C; ++k) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < I; ++i) sum += R[i][j] * at(votes, {i, j, k});
        mean[j][k] = sum / S;
        for (int64_t i = 0; i < I; ++i) squares += R[i][j] * std::pow(at(votes, {i, j, k}) - mean[j][k], 2);
        variance[j][k] = std::max(squares / S, floor);
        logs += std::log(std::sqrt(variance[j][k]));
      }
      active[j] =
          1 / (1 + std::exp(-lambda(round) * (at(activate_J, {j}) - S * (times * at(cost_J, {j}) + constant + logs))));
      for (int64_t k = 0; k < C; ++k) out[j][k] = active[j] * mean[j][k];
    }
    if (round == rounds) return found_of(out, R);
    for (int64_t i = 0; i < I; ++i) {
      double all = 0;
      for (int64_t j = 0; j < J; ++j) {
        R[i][j] = active[j];
        for (int64_t k = 0; k < C; ++k)
          R[i][j] *= std::exp(-std::pow(at(votes, {i, j, k}) - mean[j][k], 2) / (2 * variance[j][k])) /
                     std::sqrt(2 * std::numbers::pi * variance[j][k]);
        all += R[i][j];
      }
      for (auto& r : R[i]) r /= all;
    }
  }
}

}  // namespace headlab::reference
