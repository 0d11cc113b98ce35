#include "modules/attention/weigh/windowed_cpu.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <algorithm>
#include <limits>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Blocks of `step` queries, one after another, each over `span` keys that begin `step` after those of the block
/// before.
struct Run {
  int64_t query = 0, key = 0;  // where the first block's begin
  int64_t blocks = 1, step = 0, span = 0;
};

struct Plan {
  bool causal = true;
  int64_t window = 0, step = 0;
  double factor = 1;
  Tensor there_T;  // empty: all

  /// All queries of a text of T tokens. Blocks in its midst are alike and go eight at a time; those near its ends see
  /// fewer keys.
  std::vector<Run> runs(int64_t T) const {
    constexpr int64_t together = 8;
    const auto before = (window + step - 1) / step * step, after = causal ? 0 : before;
    std::vector<Run> all;
    for (int64_t query = 0; query < T;) {
      const auto length = std::min(step, T - query);
      Run run{query, std::max<int64_t>(0, query - before), 1, length, 0};
      if (query >= before && query + step + after <= T) {
        run.span = before + step + after;
        while (run.blocks < together && query + (run.blocks + 1) * step + after <= T) ++run.blocks;
      } else {
        run.span = std::min(T, query + length + after) - run.key;
      }
      query += run.blocks * run.step;
      all.push_back(run);
    }
    return all;
  }

  /// 0 where a query of the run may look, -inf elsewhere: [1 or blocks, 1, step, span].
  Tensor mask(const Run& run, const Tensor& like) const {
    const auto options = like.options().dtype(torch::kLong).requires_grad(false);
    const auto back =
        (torch::arange(run.step, options) + (run.query - run.key)).unsqueeze(1) - torch::arange(run.span, options);
    auto sees = causal ? back.ge(0).logical_and(back.lt(window)) : back.abs().lt(window);
    if (there_T.numel() > 0)
      sees = sees.logical_and(there_T.narrow(0, run.key, (run.blocks - 1) * run.step + run.span)
                                  .unfold(0, run.span, run.step)
                                  .unsqueeze(1))
                 .unsqueeze(1);
    else
      sees = sees.unsqueeze(0).unsqueeze(0);
    return torch::zeros(sees.sizes(), like.options().requires_grad(false))
        .masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity())
        .expand({run.blocks, 1, run.step, run.span});
  }
};

/// x_NTK as blocks: [blocks, N, length, K], views that may overlap.
Tensor blocks_of(const Tensor& x_NTK, int64_t from, int64_t blocks, int64_t step, int64_t length) {
  return x_NTK.narrow(1, from, (blocks - 1) * step + length).unfold(1, length, step).permute({1, 0, 3, 2});
}
Tensor queries_of(const Tensor& x_NTK, const Run& run) {
  return blocks_of(x_NTK, run.query, run.blocks, run.step, run.step);
}
Tensor keys_of(const Tensor& x_NTK, const Run& run) {
  return blocks_of(x_NTK, run.key, run.blocks, run.step, run.span);
}

/// Adds what blocks_of would have taken apart.
void add_blocks(Tensor& sum_NTK, const Tensor& of_blocks, const Run& run) {
  for (int64_t from = 0; from < run.span; from += run.step) {
    const auto length = std::min(run.step, run.span - from);
    if (run.blocks == 1) {
      sum_NTK.narrow(1, run.key + from, length).add_(of_blocks[0].narrow(1, from, length));
      continue;
    }
    sum_NTK.narrow(1, run.key + from, run.blocks * run.step)
        .unflatten(1, at::IntArrayRef{run.blocks, run.step})
        .add_(of_blocks.narrow(2, from, length).transpose(0, 1));
  }
}

struct Windowed : torch::autograd::Function<Windowed> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q_BHTK, const Tensor& k_BHTK,
                        const Tensor& v_BHTK, const Tensor& there_T, bool causal, int64_t window, int64_t step,
                        double factor) {
    const Plan plan{causal, window, step, factor, there_T};
    const auto q = q_BHTK.flatten(0, 1), k = k_BHTK.flatten(0, 1), v = v_BHTK.flatten(0, 1);
    const auto N = q.size(0), T = q.size(1);
    const auto z_NTK = torch::empty({N, T, v.size(2)}, q.options());
    const auto lse_NT = torch::empty({N, T}, q.options().dtype(at_least_float(q.scalar_type())));
    for (const auto& run : plan.runs(T)) {
      const auto [z, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
          queries_of(q, run), keys_of(k, run), keys_of(v, run), 0.0, false, plan.mask(run, q), factor);
      queries_of(z_NTK, run).copy_(z);
      lse_NT.narrow(1, run.query, run.blocks * run.step)
          .unflatten(1, at::IntArrayRef{run.blocks, run.step})
          .copy_(lse.transpose(0, 1));
    }
    auto z_BHTK = z_NTK.view({q_BHTK.size(0), q_BHTK.size(1), T, v.size(2)});
    context->save_for_backward({q_BHTK, k_BHTK, v_BHTK, there_T, z_BHTK, lse_NT});
    context->saved_data["causal"] = causal;
    context->saved_data["window"] = window;
    context->saved_data["step"] = step;
    context->saved_data["factor"] = factor;
    return z_BHTK;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Plan plan{context->saved_data["causal"].toBool(), context->saved_data["window"].toInt(),
                    context->saved_data["step"].toInt(), context->saved_data["factor"].toDouble(), saved[3]};
    const auto q = saved[0].flatten(0, 1), k = saved[1].flatten(0, 1), v = saved[2].flatten(0, 1),
               z = saved[4].flatten(0, 1);
    const auto& lse_NT = saved[5];
    const auto dz = gradients[0].flatten(0, 1);
    auto dq = torch::empty_like(q), dk = torch::zeros_like(k), dv = torch::zeros_like(v);
    for (const auto& run : plan.runs(q.size(1))) {
      const auto lse = lse_NT.narrow(1, run.query, run.blocks * run.step)
                           .unflatten(1, at::IntArrayRef{run.blocks, run.step})
                           .transpose(0, 1);
      const auto [of_q, of_k, of_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          queries_of(dz, run), queries_of(q, run), keys_of(k, run), keys_of(v, run), queries_of(z, run), lse, 0.0,
          false, plan.mask(run, q), plan.factor);
      queries_of(dq, run).copy_(of_q);
      add_blocks(dk, of_k, run);
      add_blocks(dv, of_v, run);
    }
    return {dq.view_as(saved[0]),
            dk.view_as(saved[1]),
            dv.view_as(saved[2]),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor windowed_on_cpu(const Tensor& q_BHTK, const Tensor& k_BHTK, const Tensor& v_BHTK, const Tensor& there_T,
                       bool causal, int64_t window, int64_t step, double factor) {
  const auto there =
      there_T.defined() ? there_T : torch::empty({0}, q_BHTK.options().dtype(torch::kBool).requires_grad(false));
  return Windowed::apply(q_BHTK, k_BHTK, v_BHTK, there, causal, window, step, factor);
}

}  // namespace headlab
