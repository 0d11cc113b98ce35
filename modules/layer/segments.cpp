#include "modules/layer/segments.h"

#include <algorithm>

#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

bool looked_at(const Forward& run, Site site) {
  for (const auto at : {At::x, At::memory, At::q, At::k, At::v, At::scores, At::weights, At::z, At::o, At::y})
    if (run.wants(at, site)) return true;
  return false;
}

/// Of the keys that a call without segments would have: cached ones stand before its own.
Tensor key_positions(const AttentionCall& call) {
  if (!call.state || call.state->empty()) return call.k_pos;
  const auto before = places_of(call.state->stored.back());
  return torch::cat({before - before.slice(0, -1) - 1 + call.q_pos.slice(-1, 0, 1), call.q_pos}, -1);
}

}  // namespace

void SegmentOptions::describe(Fields& fields) {
  fields.add("length", length, "tokens of a segment, between which no gradient flows")
      .at_least(1)
      .unit("tokens")
      .means("absent: the whole text");
  fields.add("memory", memory, "tokens before its segment that a token still sees")
      .at_least(0)
      .unit("tokens")
      .means("absent: length");
}

void SegmentOptions::rules(Problems& problems) const {
  if (memory && !length) problems.add("memory", "goes with length: a text that is one segment has nothing before it");
}

Tensor attend_in_segments(Mixer& attention, const SegmentOptions& options, const AttentionCall& call) {
  const auto L = options.length.value(), M = options.memory.value_or(L);
  if (call.state || recording() || relevance::flows() || looked_at(call.run, call.site)) {
    auto whole = call;
    const auto first = torch::div(call.q_pos, L, "floor") * L - M;
    whole.see.allowed_BTS = key_positions(call).unsqueeze(-2).ge(first.unsqueeze(-1));
    return attention.forward(whole);
  }
  const auto& x = call.x_BTD;
  const auto T = x.size(1);
  std::vector<Tensor> y;
  for (int64_t start = 0; start < T; start += L) {
    const auto length = std::min(L, T - start), past = std::min(M, start);
    const auto of = [&](const Tensor& all, int64_t from, int64_t count) {
      return all.defined() ? all.narrow(-1, from, count) : all;
    };
    auto part = call;
    part.x_BTD = x.narrow(1, start, length);
    part.memory_BSD = past > 0 ? torch::cat({x.narrow(1, start - past, past).detach(), part.x_BTD}, 1) : part.x_BTD;
    part.goes_on = past > 0;
    part.q_pos = of(call.q_pos, start, length);
    part.k_pos = of(call.k_pos, start - past, past + length);
    part.see.query_mask_BT = of(call.see.query_mask_BT, start, length);
    part.see.key_mask_BS = of(call.see.key_mask_BS, start - past, past + length);
    y.push_back(attention.forward(part));
  }
  return y.size() == 1 ? y.front() : torch::cat(y, 1);
}

int64_t flops_in_segments(const Mixer& attention, const SegmentOptions& options, int64_t T) {
  const auto L = options.length.value(), M = options.memory.value_or(L);
  int64_t count = 0;
  for (int64_t start = 0; start < T; start += L) {
    const auto length = std::min(L, T - start);
    count += attention.flops(length, std::min(M, start) + length, true);
  }
  return count;
}

}  // namespace headlab
