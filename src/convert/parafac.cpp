#include "src/convert/parafac.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

struct Factors {
  Tensor left_DR, mix_HR, right_ER;
};

Tensor gram(const Tensor& x) { return torch::matmul(x.t(), x); }

/// The x of least squares, x G = v; of components that are not there (or equal to others) the smallest.
Tensor solved(const Tensor& v, const Tensor& G) {
  return torch::matmul(v, torch::linalg_pinv(G, 1e-14, /*hermitian=*/true));
}

/// T_h^T a_r and the like, each without the half of T_h that does not meet the factor: [H,K,R].
Tensor meets(const Tensor& half_HDK, const Tensor& factor_DR) {
  return torch::matmul(half_HDK.transpose(1, 2), factor_DR);
}

/// The `rank` largest singular triplets of all slices, each a component that is its slice's alone.
Factors separate(const Tensor& left_HDK, const Tensor& right_HEK, int64_t rank) {
  const auto [Q, R] = torch::linalg_qr(left_HDK);
  const auto [P, S] = torch::linalg_qr(right_HEK);
  auto [U, s, V] = torch::linalg_svd(torch::matmul(R, S.transpose(1, 2)), /*full_matrices=*/false);
  const auto left = torch::matmul(Q, U * s.unsqueeze(1)).transpose(1, 2).flatten(0, 1);  // [H K, D]
  const auto right = torch::matmul(P, V.transpose(1, 2)).transpose(1, 2).flatten(0, 1);  // [H K, E]
  const auto H = left_HDK.size(0), each = s.size(1), there = std::min(rank, H * each);
  const auto chosen = std::get<1>(s.flatten().topk(there));
  const auto mix = torch::eye(H, s.options()).repeat_interleave(each, 0);  // [H K, H]
  const auto part = [&](const Tensor& all) {
    return torch::constant_pad_nd(all.index_select(0, chosen).t(), {0, rank - there});
  };
  return {part(left), part(mix), part(right)};
}

double error_of(const Tensor& left_HDK, const Tensor& right_HEK, const Factors& f) {
  double square = 0, all = 0;
  for (int64_t h = 0; h < left_HDK.size(0); ++h) {
    const auto slice = torch::matmul(left_HDK[h], right_HEK[h].t());
    square += (slice - torch::matmul(f.left_DR * f.mix_HR[h], f.right_ER.t())).square().sum().item<double>();
    all += slice.square().sum().item<double>();
  }
  return all > 0 ? std::sqrt(square / all) : 0.0;
}

/// Improves the factors; returns the iterations.
int64_t alternate(const Tensor& left_HDK, const Tensor& right_HEK, const ParafacOptions& options, Factors& f) {
  const auto norm2 =
      (torch::matmul(left_HDK.transpose(1, 2), left_HDK) * torch::matmul(right_HEK.transpose(1, 2), right_HEK))
          .sum()
          .item<double>();
  if (norm2 == 0) return 0;
  double before = std::numeric_limits<double>::infinity();
  for (int64_t i = 1; i <= options.iterations; ++i) {
    const auto left = meets(left_HDK, f.left_DR);
    auto right = meets(right_HEK, f.right_ER);
    f.mix_HR = solved((left * right).sum(1), gram(f.left_DR) * gram(f.right_ER));
    f.left_DR =
        solved(torch::matmul(left_HDK, right * f.mix_HR.unsqueeze(1)).sum(0), gram(f.mix_HR) * gram(f.right_ER));
    const auto of_right = torch::matmul(right_HEK, meets(left_HDK, f.left_DR) * f.mix_HR.unsqueeze(1)).sum(0);
    const auto others = gram(f.left_DR) * gram(f.mix_HR);
    f.right_ER = solved(of_right, others);
    const auto left_over =
        norm2 - 2 * (of_right * f.right_ER).sum().item<double>() + (others * gram(f.right_ER)).sum().item<double>();
    const auto error = std::sqrt(std::max(0.0, left_over) / norm2);
    if (before - error < options.tolerance) return i;
    before = error;
  }
  return options.iterations;
}

void balance(Factors& f) {
  const auto mix = f.mix_HR.square().mean(0).sqrt(), left = f.left_DR.norm(2, {0}), right = f.right_ER.norm(2, {0});
  const auto size = (mix * left * right).sqrt();
  const auto over = [](const Tensor& scale, const Tensor& by) {
    return torch::where(by > 0, scale / by, torch::zeros_like(by));
  };
  f.left_DR = f.left_DR * over(size, left);
  f.right_ER = f.right_ER * over(size, right);
  f.mix_HR = f.mix_HR * over(torch::ones_like(mix), mix);
}

}  // namespace

Parafac parafac(const Tensor& left_HDK, const Tensor& right_HEK, const ParafacOptions& options,
                at::Generator generator) {
  const torch::NoGradGuard no_grad;
  const auto apart = separate(left_HDK, right_HEK, options.rank);
  auto best = apart;
  Parafac found;
  found.error = found.separate_error = error_of(left_HDK, right_HEK, apart);
  const auto normal = [&](int64_t rows) {
    return torch::empty({rows, options.rank}, left_HDK.options()).normal_(0, 1, generator);
  };
  for (int64_t start = 0; start < options.starts && found.error > options.tolerance; ++start) {
    auto factors = start == options.starts - 1
                       ? apart
                       : Factors{normal(left_HDK.size(1)), normal(left_HDK.size(0)), normal(right_HEK.size(1))};
    const auto iterations = alternate(left_HDK, right_HEK, options, factors);
    const auto error = error_of(left_HDK, right_HEK, factors);
    if (error >= found.error - options.tolerance) continue;
    best = factors;
    found.error = error;
    found.iterations = iterations;
  }
  balance(best);
  found.left_DR = best.left_DR;
  found.mix_HR = best.mix_HR;
  found.right_ER = best.right_ER;
  return found;
}

}  // namespace headlab
