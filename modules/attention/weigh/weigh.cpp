#include "modules/attention/weigh/weigh.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "modules/attention/weigh/windowed_cpu.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

bool in_order(const std::vector<int64_t>& positions, int64_t count) {
  if (static_cast<int64_t>(positions.size()) != count) return false;
  for (int64_t i = 0; i < count; ++i)
    if (positions[i] != i) return false;
  return true;
}

/// x with columns of zeros up to `width`.
Tensor widened(const Tensor& x_BHTK, int64_t width) {
  return x_BHTK.size(3) == width ? x_BHTK : torch::constant_pad_nd(x_BHTK, {0, width - x_BHTK.size(3)});
}

/// The mask with `ahead` keys before its own that every query sees.
Tensor after_seen(const Tensor& mask, int64_t ahead) {
  return ahead > 0 ? torch::constant_pad_nd(mask, {ahead, 0}, 1) : mask;
}

Tensor one_call(const HeadBlock& block, const Tensor& mask, double dropout, bool is_causal, double factor) {
  auto bias = mask;
  if (block.bias.defined()) {
    bias = block.bias;
    if (mask.defined()) bias = bias.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  // The fused kernel takes values as wide as keys alone: the narrower gets zeros, which change no score and no sum.
  const auto width = std::max(block.q_BHTK.size(3), block.v_BGSK.size(3));
  const auto z = at::scaled_dot_product_attention(
      widened(block.q_BHTK, width), widened(block.k_BGSK, width), widened(block.v_BGSK, width),
      bias.defined() ? std::optional<Tensor>(bias) : std::nullopt, dropout, is_causal, factor,
      /*enable_gqa=*/block.k_BGSK.size(1) != block.q_BHTK.size(1));
  return z.size(3) == block.v_BGSK.size(3) ? z : z.narrow(3, 0, block.v_BGSK.size(3));
}

/// What visible() says of a block, and what its heads may attend to; keys ahead of the text's are seen by all.
Tensor visible_to(const HeadBlock& block, const Visibility& see, bool from_start, int64_t ahead) {
  const auto mask = visible(block.q_BHTK, block.k_BGSK, see, block.window, from_start, ahead);
  if (!block.allowed.defined()) return mask;
  const auto allowed = after_seen(block.allowed, ahead);
  return mask.defined() ? mask.logical_and(allowed) : allowed;
}

}  // namespace

Weigh::Weigh(const WeighOptions& options, Shape shape) : dropout_(options.dropout) {
  score = register_module("score", scores().make(options.score, shape));
  normalise = register_module("normalise", normalisers().make(options.normalise));
}

bool Weigh::in_one_call(Site site, const Forward& run) const {
  return score->factor() && normalise->is_softmax() && !run.wants(At::scores, site) && !run.wants(At::weights, site) &&
         !relevance::flows();
}

bool Weigh::fusable(Site site, const Forward& run, bool bias_learns) const {
  return in_one_call(site, run) && !bias_learns && !(is_training() && dropout_ > 0);
}

Tensor places_of(const Tensor& x_BHNK) {
  const auto options = x_BHNK.options().dtype(torch::kLong).requires_grad(false);
  if (!recording()) return torch::arange(x_BHNK.size(2), options);
  return torch::ones_like(x_BHNK.select(0, 0).select(0, 0).select(-1, 0)).to(torch::kLong).cumsum(0) -
         1;  // names no device
}

Tensor pick(const Tensor& x, int64_t dim, const std::vector<int64_t>& positions) {
  std::vector<Tensor> runs;
  for (std::size_t i = 0; i < positions.size();) {
    std::size_t end = i + 1;
    while (end < positions.size() && positions[end] == positions[end - 1] + 1) ++end;
    runs.push_back(x.narrow(dim, positions[i], static_cast<int64_t>(end - i)));
    i = end;
  }
  if (runs.empty()) return x.narrow(dim, 0, 0);
  return runs.size() == 1 ? runs.front() : torch::cat(runs, dim);
}

std::vector<HeadBlock> cut_blocks(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                                  const std::vector<int64_t>& group_of, const std::vector<int64_t>& window_H) {
  const auto H = q_BHTK.size(1), G = k_BGSK.size(1);
  const auto window = [&](int64_t head) { return window_H.empty() ? 0 : window_H[head]; };
  // Heads that share a window and a group form one unit; units of equal window and size form one block.
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> units;  // {window, group}: heads
  for (int64_t head = 0; head < H; ++head) units[{window(head), group_of[head]}].push_back(head);
  std::map<std::pair<int64_t, std::size_t>, std::pair<std::vector<int64_t>, std::vector<int64_t>>> kinds;
  for (const auto& [key, heads] : units) {
    auto& [of_kind, groups] = kinds[{key.first, heads.size()}];
    of_kind.insert(of_kind.end(), heads.begin(), heads.end());
    groups.push_back(key.second);
  }
  std::vector<HeadBlock> blocks;
  for (auto& [key, members] : kinds) {
    auto& [heads, groups] = members;
    HeadBlock block;
    block.window = key.first;
    block.q_BHTK = in_order(heads, H) ? q_BHTK : pick(q_BHTK, 1, heads);
    block.k_BGSK = in_order(groups, G) ? k_BGSK : pick(k_BGSK, 1, groups);
    block.v_BGSK = in_order(groups, G) ? v_BGSK : pick(v_BGSK, 1, groups);
    block.heads = std::move(heads);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Tensor visible(const Tensor& q_BHTK, const Tensor& keys_BGSK, const Visibility& see, int64_t window, bool from_start,
               int64_t ahead) {
  const auto k_BGSK = ahead > 0 ? keys_BGSK.slice(2, ahead) : keys_BGSK;
  Tensor mask;
  const auto both = [&](const Tensor& more) { mask = mask.defined() ? mask.logical_and(more) : more; };
  const bool last_alone = !from_start && q_BHTK.size(2) == 1;  // one new token sees all that is cached
  if ((see.causal && !last_alone) || window > 0) {
    const auto key_S = places_of(k_BGSK);
    auto query_T = places_of(q_BHTK);
    if (!from_start) query_T = query_T + (key_S.slice(0, -1) - query_T.slice(0, -1));
    const auto back = query_T.unsqueeze(1) - key_S;  // how far the key lies behind the query
    if (see.causal) both(back.ge(0));
    if (window > 0) both((see.causal ? back : back.abs()).lt(window));
  }
  if (see.allowed_BTS.defined()) both(see.allowed_BTS.dim() == 3 ? see.allowed_BTS.unsqueeze(1) : see.allowed_BTS);
  if (see.key_mask_BS.defined()) both(see.key_mask_BS.unsqueeze(1).unsqueeze(1));
  return mask.defined() ? after_seen(mask, ahead) : mask;
}

namespace {

/// Stretches of `span` tokens, one beginning every `step`, of x_NPK (contiguous): [blocks, N, span, K], without a copy.
/// Their gradients are added up where they overlap. P is a multiple of `step` and long enough.
struct Stretches : torch::autograd::Function<Stretches> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x_NPK, int64_t blocks, int64_t step,
                        int64_t span) {
    const auto N = x_NPK.size(0), P = x_NPK.size(1), K = x_NPK.size(2);
    context->saved_data["P"] = P;
    context->saved_data["step"] = step;
    return x_NPK.as_strided({blocks, N, span, K}, {step * K, P * K, K, 1}, x_NPK.storage_offset());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto& of_blocks = gradients[0];
    const auto P = context->saved_data["P"].toInt(), step = context->saved_data["step"].toInt();
    const auto blocks = of_blocks.size(0), N = of_blocks.size(1), span = of_blocks.size(2), K = of_blocks.size(3);
    auto sum_NPK = torch::zeros({N, P, K}, of_blocks.options());
    for (int64_t from = 0; from < span; from += step)
      sum_NPK.narrow(1, from, blocks * step)
          .unflatten(1, at::IntArrayRef{blocks, step})
          .add_(of_blocks.narrow(2, from, step).transpose(0, 1));
    return {sum_NPK, Tensor(), Tensor(), Tensor()};
  }
};

/// How many queries of a windowed attention go together. Each block sees a window before it and itself, so that few
/// mean few keys seen in vain, and many fewer copies of the keys' gradients; the fused kernel itself takes queries
/// by 32.
int64_t block_length(int64_t window) { return std::max<int64_t>(32, window / 2 / 32 * 32); }

}  // namespace

int64_t windowed_span(int64_t window, bool causal) {
  const auto step = block_length(window), before = (window + step - 1) / step * step;
  return before + step + (causal ? 0 : before);
}

Tensor windowed_attention(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK, const Visibility& see,
                          int64_t window, double factor, int64_t ahead) {
  if (see.key_mask_BS.defined() && q_BHTK.size(0) > 1) {  // each text hides keys of its own
    std::vector<Tensor> z;
    for (int64_t b = 0; b < q_BHTK.size(0); ++b) {
      auto of_row = see;
      of_row.key_mask_BS = see.key_mask_BS.size(0) == 1 ? see.key_mask_BS : see.key_mask_BS.narrow(0, b, 1);
      z.push_back(windowed_attention(q_BHTK.narrow(0, b, 1), k_BGSK.narrow(0, b, 1), v_BGSK.narrow(0, b, 1), of_row,
                                     window, factor, ahead));
    }
    return torch::cat(z, 0);
  }
  if (q_BHTK.is_cpu() && ahead == 0 && q_BHTK.size(1) == k_BGSK.size(1) && k_BGSK.size(3) == v_BGSK.size(3))
    return windowed_on_cpu(q_BHTK, k_BGSK, v_BGSK, see.key_mask_BS.defined() ? see.key_mask_BS[0] : Tensor(),
                           see.causal, window, block_length(window), factor);
  const auto B = q_BHTK.size(0), H = q_BHTK.size(1), T = q_BHTK.size(2);
  const auto step = block_length(window), before = (window + step - 1) / step * step, after = see.causal ? 0 : before;
  const auto blocks = (T + step - 1) / step, padding = blocks * step - T, span = windowed_span(window, see.causal);
  // Block n has the queries from n step on, and sees the keys from n step - before on: what lies outside the text is
  // padding. Texts and heads are one dimension, blocks the other.
  const auto queries = (padding > 0 ? torch::constant_pad_nd(q_BHTK, {0, 0, 0, padding}) : q_BHTK)
                           .flatten(0, 1)
                           .unflatten(1, at::IntArrayRef{blocks, step})
                           .transpose(0, 1);
  const auto seen_from_blocks = [&](const Tensor& x_BGSK) {
    const auto context = ahead > 0 ? x_BGSK.slice(2, ahead) : x_BGSK;
    const auto stretches =
        Stretches::apply(torch::constant_pad_nd(context, {0, 0, before, padding + after}).flatten(0, 1).contiguous(),
                         blocks, step, span);
    if (ahead == 0) return stretches;
    return torch::cat({x_BGSK.narrow(2, 0, ahead).flatten(0, 1).unsqueeze(0).expand({blocks, -1, -1, -1}), stretches},
                      2);
  };
  const auto options = q_BHTK.options().dtype(torch::kLong).requires_grad(false);
  const auto back =
      (torch::arange(step, options) + before).unsqueeze(1) - torch::arange(span, options);  // [step, span]
  const auto near = see.causal ? back.ge(0).logical_and(back.lt(window)) : back.abs().lt(window);
  const auto keys = see.key_mask_BS.defined() ? see.key_mask_BS : torch::ones({1, T}, options.dtype(torch::kBool));
  const auto there = torch::constant_pad_nd(keys[0], {before, padding + after})
                         .unfold(0, span, step)
                         .unsqueeze(1);  // [blocks, 1, span]
  HeadBlock block;
  block.q_BHTK = queries;
  block.k_BGSK = seen_from_blocks(k_BGSK);
  block.v_BGSK = seen_from_blocks(v_BGSK);
  const auto z = one_call(block, after_seen(near.logical_and(there).unsqueeze(1), ahead), 0.0, false,
                          factor);  // [blocks, B*H, step, K]
  const auto by_token = z.transpose(0, 1).reshape({B, H, blocks * step, v_BGSK.size(3)});
  return by_token.narrow(2, 0, T);
}

Tensor Weigh::one_block(const HeadBlock& block, const AttentionCall& call, bool from_start) {
  const auto& see = call.see;
  const auto factor = *score->factor();
  const auto dropout = is_training() ? dropout_ : 0.0;
  const bool places_alone = !block.bias.defined() && !see.allowed_BTS.defined() && !block.allowed.defined();
  if (places_alone && !see.key_mask_BS.defined() && see.causal && from_start && block.window == 0 && call.ahead == 0)
    return one_call(block, {}, dropout, true, factor);
  const auto T = block.q_BHTK.size(2);
  if (places_alone && block.window > 0 && T > 2 * windowed_span(block.window, see.causal) &&
      T == block.k_BGSK.size(2) - call.ahead && from_start && dropout == 0 && !recording())
    return windowed_attention(block.q_BHTK, block.k_BGSK, block.v_BGSK, see, block.window, factor, call.ahead);
  return one_call(block, visible_to(block, see, from_start, call.ahead), dropout, false, factor);
}

Tensor Weigh::forward(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                      const std::vector<int64_t>& group_of, const HeadPlan& plan, const Tensor& of_context,
                      const AttentionCall& call, bool from_start) {
  const auto bias =
      of_context.defined() && call.ahead > 0 ? torch::constant_pad_nd(of_context, {call.ahead, 0}) : of_context;
  auto blocks = cut_blocks(q_BHTK, k_BGSK, v_BGSK, group_of, plan.window_H);
  std::vector<int64_t> order;
  for (auto& block : blocks) {
    order.insert(order.end(), block.heads.begin(), block.heads.end());
    if (bias.defined())
      block.bias = bias.dim() < 3 || bias.size(-3) == 1 ? bias : pick(bias, bias.dim() - 3, block.heads);
    if (plan.allowed_BHTS.defined()) block.allowed = pick(plan.allowed_BHTS, 1, block.heads);
  }
  std::vector<int64_t> place(order.size());  // where head h stands in `order`
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int64_t>(i);
  if (!in_one_call(call.site, call.run)) return instrumented(blocks, call, from_start, place);
  std::vector<Tensor> parts;
  for (const auto& block : blocks) parts.push_back(one_block(block, call, from_start));
  const auto z = parts.size() == 1 ? parts.front() : torch::cat(parts, 1);
  return in_order(place, q_BHTK.size(1)) ? z : pick(z, 1, place);
}

Tensor Weigh::instrumented(const std::vector<HeadBlock>& blocks, const AttentionCall& call, bool from_start,
                           const std::vector<int64_t>& place) {
  const auto expand = [](const Tensor& kv, int64_t heads) {
    return kv.size(1) == heads ? kv : kv.repeat_interleave(heads / kv.size(1), 1);
  };
  const auto whole = [&](const std::vector<Tensor>& parts) {
    const auto joined = parts.size() == 1 ? parts.front() : torch::cat(parts, 1);
    return in_order(place, joined.size(1)) ? joined : pick(joined, 1, place);
  };
  std::vector<Tensor> of_scores, of_values;
  for (const auto& block : blocks) {
    const auto heads = block.q_BHTK.size(1);
    auto s = score->score(block.q_BHTK, expand(block.k_BGSK, heads), block.heads);
    if (block.bias.defined()) s = s + block.bias;
    const auto mask = visible_to(block, call.see, from_start, call.ahead);
    if (mask.defined()) s = s.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
    of_scores.push_back(s);
    of_values.push_back(expand(block.v_BGSK, heads));
  }
  auto& run = call.run;
  const auto scores_BHTS = run.see(At::scores, call.site, whole(of_scores), &call);
  const auto weights_BHTS = run.see(At::weights, call.site, normalise->weights(scores_BHTS), &call);
  return relevance::weighted_sum(torch::dropout(weights_BHTS, dropout_, is_training()), whole(of_values));
}

}  // namespace headlab
