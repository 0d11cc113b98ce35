#include "modules/mixer/ngram_and_attention.h"

#include <algorithm>
#include <numeric>

#include "modules/base/clash.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

NgramOptions of_all_heads(const NgramAndAttentionOptions& options, int64_t heads) {
  NgramOptions all;
  static_cast<NgramStyle&>(all) = options;
  all.heads = heads;
  return all;
}

/// While it lives, taps of a call see the heads of both kinds in one list: z and o of the attention's heads come by
/// here, and the n-gram heads' are joined to them.
class JoinedHeads : public Tap {
 public:
  JoinedHeads(const AttentionCall& call, Ngram& ngram, Tensor z_BHTK)
      : call_(call), ngram_(ngram), z_BHTK_(std::move(z_BHTK)) {
    outer_.taps.swap(call_.run.taps);
    call_.run.taps = {this};
  }
  ~JoinedHeads() override { call_.run.taps.swap(outer_.taps); }
  JoinedHeads(const JoinedHeads&) = delete;
  JoinedHeads& operator=(const JoinedHeads&) = delete;

  bool wants(At at, Site site) const override { return at != At::x && at != At::y && outer_.wants(at, site); }
  Tensor see(At at, Site site, Tensor value, const AttentionCall* call) override {
    if (at != At::z && at != At::o) return outer_.see(at, site, value, call);
    const auto own = at == At::z ? z_BHTK_ : ngram_.output().per_head(scaled());
    const auto both = torch::cat({value, own}, 1), seen = outer_.see(at, site, both, call);
    const auto before = value.size(1);
    if (at == At::z)
      z_BHTK_ = seen.slice(1, before);
    else if (seen.is_same(both))
      return value;
    else
      added_BTD_ = (seen - both).slice(1, before).sum(1);
    return seen.slice(1, 0, before);
  }

  /// What the n-gram heads add to y.
  Tensor y_BTD() {
    const auto y = ngram_.output().mix(scaled(), {});
    return added_BTD_.defined() ? y + added_BTD_ : y;
  }

  /// For a call whose attention has no head to show.
  void show() {
    for (const auto at : {At::z, At::o})
      if (wants(at, call_.site))
        see(at, call_.site, (at == At::z ? z_BHTK_ : ngram_.output().per_head(scaled())).slice(1, 0, 0), &call_);
  }

 private:
  const Tensor& scaled() {
    if (!scaled_BHTK_.defined()) scaled_BHTK_ = ngram_.scaled(z_BHTK_, call_);
    return scaled_BHTK_;
  }
  const AttentionCall& call_;
  Ngram& ngram_;
  Forward outer_;                // the taps of the pass
  Tensor z_BHTK_, scaled_BHTK_;  // of the n-gram heads
  Tensor added_BTD_;             // what taps of o changed
};

}  // namespace

void NgramAndAttentionOptions::describe(Fields& fields) {
  fields.add("heads", heads, "how many of the attention's heads, the last ones, are n-gram heads").at_least(0);
  describe_style(fields);
}

std::vector<Clash> ngram_and_attention_clashes() {
  const std::string all_groups = "its heads read the keys and values of all heads, and n-gram heads have none";
  const std::string counts = "it goes by how many of a layer's heads are open, and n-gram heads have no gate";
  return {{"adapter.mix_heads", all_groups},
          {"adapter.fuse_groups", all_groups},
          {"gate.heads_by_length", counts},
          {"gate.l0_round", counts},
          {"gate.route_experts",
           "heads that a token chose stand in the order it chose them, and n-gram heads by their numbers"}};
}

void ngram_and_attention_rules(const NgramAndAttentionOptions& options, const AttentionOptions& attention,
                               int64_t width, const std::string& layer, Problems& problems) {
  attention_rules(attention, width, false, layer + ".attention", problems);
  const auto refuse = [&](const std::string& slot, const std::string& list, const Choices& entries) {
    for (std::size_t i = 0; i < entries.items.size(); ++i)
      for (const auto& clash : ngram_and_attention_clashes())
        if (const auto name = slot + "." + entries.items[i].type(); speaks_of(clash, name))
          problems.add(layer + ".attention." + list + "[" + std::to_string(i) + "]",
                       name + " can't stand beside mixer.ngram_and_attention: " + clash.why);
  };
  refuse("adapter", "then", attention.then);
  refuse("gate", "gates", attention.gates);
  const auto H = attention.heads;
  if (options.heads > H)
    problems.add(layer + ".mixer.heads", "expected at most the attention's heads (" + std::to_string(H) + "), got " +
                                             std::to_string(options.heads));
  if (attention.head_width && width % H != 0)  // without one, it is the attention's own rule
    problems.add(layer + ".attention.heads", "expected a divisor of d_model (" + std::to_string(width) +
                                                 "), which n-gram heads share in chunks, got " + std::to_string(H));
  else if (const auto K = width / H, V = attention.value_width.value_or(attention.head_width.value_or(K)); V != K)
    problems.add(layer + ".attention.value_width",
                 "expected d_model / heads (" + std::to_string(K) +
                     ") beside n-gram heads, which are that wide: outputs of all heads stand in one list; got " +
                     std::to_string(V));
}

NgramAndAttention::NgramAndAttention(const NgramAndAttentionOptions& options, const AttentionOptions& of_attention,
                                     int64_t width, bool causal, const std::optional<std::vector<int64_t>>& kept)
    : first_(of_attention.heads - options.heads), keeps_frames_(options.n > 1) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  const auto H = of_attention.heads;
  const auto V = of_attention.value_width.value_or(of_attention.head_width.value_or(width / H));
  if (first_ < 0 || V * H != width)
    throw ShapeError("mixer.ngram_and_attention: expected at most " + number(H) +
                     " n-gram heads, and values of d_model / heads (" + number(width) + " / " + number(H) +
                     ") numbers, got " + number(options.heads) + " and " + number(V));
  std::vector<int64_t> all(static_cast<std::size_t>(H));
  std::iota(all.begin(), all.end(), 0);
  const auto parts = split(kept.value_or(all));
  attention = register_module("attention",
                              std::make_shared<Attention>(of_attention, width, width, /*cross=*/false, parts.first));
  ngram = register_module("ngram", std::make_shared<Ngram>(of_all_heads(options, H), width, causal, parts.second,
                                                           /*output_bias=*/false));
  count_heads();
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> NgramAndAttention::split(std::vector<int64_t> heads) const {
  const auto middle = std::stable_partition(heads.begin(), heads.end(), [&](int64_t head) { return head < first_; });
  return {{heads.begin(), middle}, {middle, heads.end()}};
}

void NgramAndAttention::count_heads() {
  heads_ = attention->heads();
  heads_.insert(heads_.end(), ngram->heads().begin(), ngram->heads().end());
}

Tensor NgramAndAttention::forward(const AttentionCall& given) {
  if (ngram->heads().empty()) return attention->forward(given);
  auto& run = given.run;
  auto call = given;
  call.x_BTD = run.see(At::x, given.site, given.x_BTD, &given);
  if (given.is_self()) call.memory_BSD = call.x_BTD;

  State of_attention, of_ngram;
  if (given.state) {
    of_attention = *given.state;
    if (keeps_frames_ && !of_attention.empty()) {
      of_ngram.stored = {of_attention.stored.front()};
      of_attention.stored.erase(of_attention.stored.begin());
    }
  }
  const auto with = [&](State& state) {
    auto part = call;
    part.state = given.state ? &state : nullptr;
    return part;
  };
  Tensor y;
  {
    JoinedHeads joined(call, *ngram, ngram->heads_of(with(of_ngram)));
    y = attention->forward(with(of_attention));
    if (attention->heads().empty()) joined.show();
    y = relevance::sum(y, joined.y_BTD());
  }
  if (given.state) {
    *given.state = std::move(of_attention);
    given.state->stored.insert(given.state->stored.begin(), of_ngram.stored.begin(), of_ngram.stored.end());
  }
  return run.see(At::y, call.site, y, &call);
}

void NgramAndAttention::keep(const std::vector<int64_t>& heads) {
  for (const auto head : heads)
    if (std::count(heads_.begin(), heads_.end(), head) == 0)
      throw ShapeError("keep: head " + std::to_string(head) + " is not there");
  const auto parts = split(heads);
  attention->keep(parts.first);
  ngram->keep(parts.second);
  count_heads();
}

int64_t NgramAndAttention::flops(int64_t T, int64_t S, bool causal) const {
  return attention->flops(T, S, causal) + ngram->flops(T, S, causal);
}

}  // namespace headlab
