#include "modules/mixer/heads_by_length.h"

#include <algorithm>
#include <numeric>

#include "modules/attention/gate/native_sparse.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

bool looked_into(const Forward& run, Site site) {
  for (const auto at : {At::x, At::q, At::k, At::v, At::scores, At::weights, At::z, At::o, At::y})
    if (run.wants(at, site)) return true;
  return false;
}

std::vector<int64_t> below(const std::vector<int64_t>& heads, int64_t count) {
  std::vector<int64_t> some;
  std::copy_if(heads.begin(), heads.end(), std::back_inserter(some), [&](int64_t head) { return head < count; });
  return some;
}

/// What one attention gives for some texts of a call.
Tensor of_texts(Attention& attention, const AttentionCall& call, const Tensor& rows_N) {
  const auto B = call.x_BTD.size(0);
  const auto pick_rows = [&](const Tensor& x) { return x.defined() && x.size(0) == B ? x.index_select(0, rows_N) : x; };
  const auto of_each = [&](const Tensor& x, int64_t dims) { return x.defined() && x.dim() == dims ? pick_rows(x) : x; };
  Forward run = call.run;
  run.aux.clear();
  run.stats.clear();
  if (!call.run.scale.empty()) run.rows_B = run.rows_B.defined() ? run.rows_B.index_select(0, rows_N) : rows_N;
  for (auto& [name, told] : run.side) told = pick_rows(told);
  const auto x = call.x_BTD.index_select(0, rows_N);
  const Visibility see{call.see.causal, pick_rows(call.see.key_mask_BS), of_each(call.see.allowed_BTS, 3),
                       pick_rows(call.see.query_mask_BT)};
  const auto y =
      attention.forward({call.site, x, x, of_each(call.q_pos, 2), of_each(call.k_pos, 2), see, nullptr, run});
  for (auto& aux : run.aux) call.run.aux.push_back(std::move(aux));
  for (const auto& [name, sum] : run.stats) {
    auto& all = call.run.stats[name];
    all = all.defined() ? all + sum : sum;
  }
  return y;
}

}  // namespace

AttentionOptions with_heads(AttentionOptions attention, int64_t heads) {
  attention.heads = heads;
  attention.head_width = attention.value_width = std::nullopt;
  return attention;
}

void separate_heads_rules(const SeparateHeadsOptions& options, const AttentionOptions& attention, int64_t width,
                          const std::string& prefix, Problems& problems) {
  for (std::size_t i = 0; i < options.heads.size(); ++i) {
    const auto heads = options.heads[i];
    if (width % heads != 0) {
      problems.add(prefix + ".mixer.heads[" + std::to_string(i) + "]",
                   "expected a divisor of d_model (" + std::to_string(width) + "), got " + std::to_string(heads));
      continue;
    }
    Problems of_one;
    attention_rules(with_heads(attention, heads), width, false, prefix + ".attention", of_one);
    for (auto& problem : of_one.found)
      problems.add(problem.field, "with the " + std::to_string(heads) + " heads of mixer.heads[" + std::to_string(i) +
                                      "]: " + problem.message);
  }
  const auto refuse = [&](const std::string& field, const auto& value) {
    if (value)
      problems.add(prefix + ".attention." + field,
                   "expected none beside the mixer heads_by_length, whose heads are d_model / heads wide");
  };
  refuse("head_width", attention.head_width);
  refuse("value_width", attention.value_width);
  for (std::size_t i = 0; i < attention.gates.items.size(); ++i) {
    const auto& gate = attention.gates.items[i];
    if (gate.type() == "adaptive_windows" ||
        (gate.type() == "native_sparse" && gate.as<NativeSparseOptions>().balance == "loss_free"))
      problems.add(prefix + ".attention.gates[" + std::to_string(i) + "]",
                   gate.type() +
                       " can't stand inside the mixer heads_by_length: it learns from sums over one attention's heads, "
                       "and these differ in number");
  }
}

SeparateHeads::SeparateHeads(const SeparateHeadsOptions& options, const AttentionOptions& attention, int64_t width,
                             const std::optional<std::vector<int64_t>>& kept)
    : options_(options) {
  heads_.resize(static_cast<std::size_t>(original_heads()));
  std::iota(heads_.begin(), heads_.end(), 0);
  if (kept) heads_ = *kept;
  for (std::size_t i = 0; i < options.heads.size(); ++i)
    attentions_.push_back(register_module(
        "length" + std::to_string(i), std::make_shared<Attention>(with_heads(attention, options.heads[i]), width, width,
                                                                  /*cross=*/false, below(heads_, options.heads[i]))));
}

int64_t SeparateHeads::original_heads() const {
  return *std::max_element(options_.heads.begin(), options_.heads.end());
}

Tensor SeparateHeads::forward(const AttentionCall& call) {
  check_reads_whole(call, "the mixer heads_by_length");
  auto bin_B = options_.bins_of(call);
  const auto several = static_cast<int64_t>(attentions_.size());
  if (recording() || relevance::flows() || looked_into(call.run, call.site)) {
    Tensor y;
    for (int64_t i = 0; i < several; ++i) {
      const auto of_all = attentions_[i]->forward(call);
      y = y.defined() ? torch::where(bin_B.eq(i).unsqueeze(-1).unsqueeze(-1), of_all, y) : of_all;
    }
    return y;
  }
  bin_B = bin_B.expand({call.x_BTD.size(0)});  // one mask may be of all texts
  const auto bins = bin_B.to(torch::kCPU).contiguous();
  const auto* bin = bins.const_data_ptr<int64_t>();
  const std::vector<int64_t> of_rows(bin, bin + bins.size(0));
  if (std::all_of(of_rows.begin(), of_rows.end(), [&](int64_t one) { return one == of_rows.front(); }))
    return attentions_[static_cast<std::size_t>(of_rows.front())]->forward(
        call);  // batches of like lengths: the usual case
  std::vector<Tensor> parts, rows;
  for (int64_t i = 0; i < several; ++i) {
    const auto rows_N = bin_B.eq(i).nonzero().squeeze(-1);
    if (rows_N.size(0) == 0) continue;
    parts.push_back(of_texts(*attentions_[static_cast<std::size_t>(i)], call, rows_N));
    rows.push_back(rows_N);
  }
  return torch::cat(parts, 0).index_select(0, torch::cat(rows).argsort());
}

void SeparateHeads::keep(const std::vector<int64_t>& heads) {
  for (const auto head : heads)
    if (std::count(heads_.begin(), heads_.end(), head) == 0)
      throw ShapeError("keep: head " + std::to_string(head) + " is not there");
  for (std::size_t i = 0; i < attentions_.size(); ++i) attentions_[i]->keep(below(heads, options_.heads[i]));
  heads_ = heads;
}

int64_t SeparateHeads::flops(int64_t T, int64_t S, bool causal) const {
  return attentions_[static_cast<std::size_t>(options_.bin_of(S))]->flops(T, S, causal);
}

int64_t SeparateHeads::cache_numbers() const {
  int64_t most = 0;
  for (const auto& attention : attentions_) most = std::max(most, attention->cache_numbers());
  return most;
}

void SeparateHeads::absorb() {
  for (const auto& attention : attentions_) attention->absorb();
}

}  // namespace headlab
