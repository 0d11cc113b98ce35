#include "modules/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "modules/attention/head_scale.h"
#include "modules/attention/observers.h"
#include "modules/attention/weigh/kept.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Where each token of a call stands among those that its group keeps, after those that are cached.
Tensor own_places(const HeadPlan& plan, const AttentionCall& call) {
  const auto places = places_among(plan.held_BGS);
  if (!call.state || call.state->empty()) return places;
  return places + call.state->stored.back().to(torch::kLong).sum(-2);
}

/// Of what is there for each key, that of the queries, which are the last keys.
Tensor of_queries(const Tensor& of_keys_BHS, const Tensor& q_BHTK, bool from_start) {
  if (from_start) return of_keys_BHS;
  if (q_BHTK.size(2) == 1) return of_keys_BHS.slice(2, -1);  // in a recorded step the number of keys stays free
  return of_keys_BHS.slice(2, of_keys_BHS.size(2) - q_BHTK.size(2));
}

}  // namespace

void AttentionOptions::describe(Fields& fields) {
  fields.add("heads", heads, "number of attention heads").at_least(1);
  fields.add("head_width", head_width, "width of a head's queries and keys")
      .at_least(1)
      .means("absent: d_model / heads");
  fields.add("value_width", value_width, "width of a head's values, and so of its output")
      .at_least(1)
      .means("absent: head_width");
  fields.add("project", project, "makes queries, keys and values");
  fields.add("then", then, "adapters after the projection, in order");
  fields.add("position", position, "positions inside the attention");
  fields.add("weigh", weigh, "scores, normaliser and dropout of the weights");
  fields.add("gates", gates, "gates, in series");
  fields.add("mix", mix, "turns the heads' outputs into the attention's output");
}

Attention::Attention(const AttentionOptions& options, int64_t width, int64_t memory_width, bool cross,
                     const std::optional<std::vector<int64_t>>& kept)
    : options_(options), shape_(std::make_shared<AttentionShape>()) {
  shape_->width = width;
  shape_->memory_width = memory_width;
  shape_->cross = cross;
  shape_->original_heads = options.heads;
  if (!options.head_width && width % options.heads != 0)
    throw ShapeError("attention.heads: expected a divisor of d_model (" + std::to_string(width) +
                     ") or a head_width, got " + std::to_string(options.heads));
  shape_->head_width = options.head_width.value_or(width / options.heads);
  shape_->value_width = options.value_width.value_or(shape_->head_width);
  if (kept) {
    shape_->heads = *kept;
  } else {
    shape_->heads.resize(options.heads);
    std::iota(shape_->heads.begin(), shape_->heads.end(), 0);
  }
  for (const auto& choice : options.then.items)
    shape_->groups_shared = shape_->groups_shared || adapters().traits(choice.type()).reads_all_groups;
  project = register_module("project", projects().make(options.project, shape_));
  for (std::size_t i = 0; i < options.then.items.size(); ++i)
    adapters_.push_back(register_module("then" + std::to_string(i), adapters().make(options.then.items[i], shape_)));
  position = register_module("position", positions().make(options.position, shape_));
  weigh = register_module("weigh", std::make_shared<Weigh>(options.weigh, shape_));
  for (std::size_t i = 0; i < options.gates.items.size(); ++i)
    gates_.push_back(register_module("gate" + std::to_string(i), gates().make(options.gates.items[i], shape_)));
  mix = register_module("mix", mixes().make(options.mix, shape_));
}

Tensor Attention::forward(const AttentionCall& given) {
  auto& run = given.run;
  const auto x_BTD = run.see(At::x, given.site, given.x_BTD, &given);
  auto call = given;  // with what a tap may have put in x's place, so that gates choose by it
  call.x_BTD = x_BTD;
  if (given.is_self()) call.memory_BSD = x_BTD;
  if (x_BTD.dim() != 3 || x_BTD.size(2) != shape_->width)
    throw wrong_shape(to_string(call.site) + ".x", "[B, T, " + std::to_string(shape_->width) + "]", x_BTD);
  if (shape_->H() == 0)
    return run.see(At::y, call.site, relevance::through(x_BTD, mix->nothing().expand_as(x_BTD)), &call);

  HeadPlan plan;
  for (const auto& gate : gates_) gate->plan(plan, call);
  if (is_training())
    for (const auto& adapter : adapters_) adapter->add_loss(call);
  const bool packs = plan.held_BGS.defined() && packs_kept();
  if (packs)
    if (const auto y = over_kept(plan, call); y.defined()) return y;

  const bool from_start = !call.goes_on && (!call.state || call.state->empty());
  const bool remembered = call.state && call.state->fixed && !call.state->empty(),
             reads_stored = project->reads_stored();
  const auto prepare = [&](std::vector<Tensor> kv, const Tensor& positions) {
    for (const auto& adapter : adapters_) kv = adapter->store(std::move(kv));
    kv[0] = position->rotate(kv[0], positions);
    return kv;
  };
  Tensor q;
  std::vector<Tensor> stored;
  if (remembered) {
    q = project->query(x_BTD, plan);
    stored = call.state->stored;
  } else {
    if (call.is_self()) {
      stored = project->all(x_BTD, plan);
      q = stored.front();
      stored.erase(stored.begin());
    } else {
      const auto memory_BSD = run.see(At::memory, call.site, call.memory_BSD, &call);
      if (memory_BSD.dim() != 3 || memory_BSD.size(2) != shape_->memory_width)
        throw wrong_shape(to_string(call.site) + ".memory", "[B, S, " + std::to_string(shape_->memory_width) + "]",
                          memory_BSD);
      q = project->query(x_BTD, plan);
      stored = project->remember(memory_BSD);
    }
    if (!reads_stored) {
      auto kv = prepare({stored[0], stored[1]}, plan.own_places ? own_places(plan, call) : call.k_pos);
      std::move(kv.begin(), kv.end(), stored.begin());
    }
    if (plan.held_BGS.defined()) stored.push_back(plan.held_BGS.unsqueeze(-1));
    if (call.state && packs) {
      const auto split = kept_split();
      append_kept(*call.state, split, stored);
      stored = unpacked(*call.state, split);
    } else if (call.state) {
      call.state->append(stored);
      stored = call.state->stored;
    }
  }
  auto q_pos = call.q_pos;
  Tensor held_BGS;
  if (plan.held_BGS.defined()) {
    held_BGS = stored.back().squeeze(-1);
    stored.pop_back();
    if (plan.own_places) q_pos = of_queries(pick(places_among(held_BGS), 1, shape_->group_of), q, from_start);
  }
  auto kv = project->read(stored);
  if (reads_stored)
    kv = prepare(std::move(kv), plan.own_places ? places_among(held_BGS)
                                : remembered    ? call.k_pos
                                                : key_positions(call, kv[0], from_start));
  auto group_of = plan.chosen_BTk.defined() ? std::vector<int64_t>(q.size(1), 0) : shape_->group_of;
  for (const auto& adapter : adapters_) {
    q = adapter->query(q);
    kv = adapter->expand(kv);
    group_of = adapter->group_of(group_of);
    call.ahead += adapter->ahead();
  }
  const Observers observers(gates_, call, group_of);
  q = run.see(At::q, call.site, position->query(q, q_pos), &call);
  const auto k = run.see(At::k, call.site, kv[0], &call);
  const auto v = run.see(At::v, call.site, kv[1], &call);

  const auto added = bias(call, q, stored, from_start);
  Tensor z;
  if (held_BGS.defined() && from_start && !added.defined())
    z = attend_to_kept(*weigh, q, k, v, group_of, held_BGS, kept_split(), plan, call);
  if (!z.defined()) {
    if (held_BGS.defined()) {  // a head sees the tokens that it keeps, and is asked by those alone
      const auto held_BHS = pick(held_BGS, 1, shape_->group_of);
      const auto both = held_BHS.unsqueeze(2).logical_and(of_queries(held_BHS, q, from_start).unsqueeze(3));
      plan.allowed_BHTS = plan.allowed_BHTS.defined() ? plan.allowed_BHTS.logical_and(both) : both;
    }
    z = weigh->forward(q, k, v, group_of, plan, added, call, from_start);
  }
  return output(z, plan, call);
}

Tensor Attention::output(Tensor z, const HeadPlan& plan, const AttentionCall& call) {
  auto& run = call.run;
  z = run.see(At::z, call.site, z, &call);
  for (const auto& gate : gates_) z = gate->weigh(z, plan, call);
  z = scaled(z, plan, call);
  if (run.wants(At::o, call.site)) {
    auto o = mix->per_head(z);
    if (o.defined()) {
      const auto seen = run.see(At::o, call.site, o, &call);
      // What a tap replaced is added as a difference, so that looking alone leaves the bits as they are.
      auto y = mix->mix(z, plan);
      if (!seen.is_same(o)) y = y + (seen - o).sum(1);
      return run.see(At::y, call.site, y, &call);
    }
  }
  return run.see(At::y, call.site, mix->mix(z, plan), &call);
}

Tensor Attention::key_positions(const AttentionCall& call, const Tensor& k_BGSK, bool from_start) const {
  if (from_start) return call.k_pos;
  const auto place = places_of(k_BGSK);  // cached keys stand one after another, the last where the last query is
  return place - place.slice(0, -1) + call.q_pos.slice(-1, -1);
}

Tensor Attention::bias(const AttentionCall& call, const Tensor& q_BHTK, const std::vector<Tensor>& stored,
                       bool from_start) const {
  auto bias = project->bias(stored);
  if (position->has_bias()) {
    const auto by_place = position->bias(q_BHTK, call.q_pos, key_positions(call, stored.front(), from_start));
    bias = bias.defined() ? bias + by_place : by_place;
  }
  return bias.defined() ? bias.to(q_BHTK.scalar_type()) : bias;
}

int64_t Attention::cache_numbers() const {
  const auto numbers = project->cache_numbers().value_or(shape_->G() * (shape_->head_width + shape_->value_width));
  if (!packs_kept()) return numbers;
  const auto kept = kept_H();
  double of_groups = 0;
  for (int64_t group = 0; group < shape_->G(); ++group) {
    const auto head = std::find(shape_->group_of.begin(), shape_->group_of.end(), group) - shape_->group_of.begin();
    of_groups += kept[static_cast<std::size_t>(head)];
  }
  return std::llround(of_groups / static_cast<double>(shape_->G()) * static_cast<double>(numbers));
}

void Attention::absorb() {
  while (!adapters_.empty()) {
    const auto maps = adapters_.front()->maps();
    torch::NoGradGuard no_grad;
    if (maps.empty() || !project->absorb(maps)) return;
    for (std::size_t i = 0; i < adapters_.size(); ++i) unregister_module("then" + std::to_string(i));
    adapters_.erase(adapters_.begin());
    options_.then.items.erase(options_.then.items.begin());
    for (std::size_t i = 0; i < adapters_.size(); ++i) register_module("then" + std::to_string(i), adapters_[i]);
  }
}

Tensor Attention::scaled(const Tensor& z_BHTK, const HeadPlan& plan, const AttentionCall& call) const {
  auto scale = head_scale(call.run, call.site, shape_->heads, shape_->original_heads);
  if (!scale.defined()) return z_BHTK;
  scale = scale.to(z_BHTK.scalar_type());
  if (!plan.chosen_BTk.defined()) return relevance::through(z_BHTK, z_BHTK * scale.unsqueeze(-1).unsqueeze(-1));
  // The slots of a token hold the experts it chose, by position.
  const auto chosen = plan.chosen_BTk.permute({0, 2, 1});  // [B,k,T]
  const auto of_slot = scale.dim() == 1 ? scale.index_select(0, chosen.flatten()).view_as(chosen)
                                        : scale.unsqueeze(1).expand({-1, chosen.size(1), -1}).gather(2, chosen);
  return z_BHTK * of_slot.unsqueeze(-1);
}

void Attention::keep(const std::vector<int64_t>& heads) {
  std::vector<int64_t> positions;
  for (auto head : heads) {
    const auto found = std::find(shape_->heads.begin(), shape_->heads.end(), head);
    if (found == shape_->heads.end()) throw ShapeError("keep: head " + std::to_string(head) + " is not there");
    positions.push_back(found - shape_->heads.begin());
  }
  for (const auto& gate : gates_) gate->keep(positions);
  project->keep(positions);
  const auto where = axes();
  const auto groups = keep_heads(*shape_, positions);
  keep_units(*this, where, positions, groups);
}

bool Attention::routes() const {
  return std::any_of(gates_.begin(), gates_.end(), [](const auto& gate) { return gate->routes(); });
}

HeadAxes Attention::axes() const {
  HeadAxes axes;
  project->axes(axes.under("project."));
  for (std::size_t i = 0; i < adapters_.size(); ++i) adapters_[i]->axes(axes.under("then" + std::to_string(i) + "."));
  position->axes(axes.under("position."));
  weigh->axes(axes.under("weigh."));
  for (std::size_t i = 0; i < gates_.size(); ++i) gates_[i]->axes(axes.under("gate" + std::to_string(i) + "."));
  mix->axes(axes.under("mix."));
  return axes;
}

int64_t Attention::flops(int64_t T, int64_t S, bool causal) const {
  const auto H = shape_->H();
  if (H == 0) return 0;
  HeadOutline outline{H, {}};
  int64_t count = 0;
  for (const auto& gate : gates_) {
    gate->outline(outline);
    count += gate->flops(T);
  }
  int64_t pairs = 0, of_keys = project->flops(0, S, outline.slots);
  const auto seen = [&](int64_t head) {
    return seen_pairs(T, S, causal, outline.window_H.empty() ? 0 : outline.window_H[head]);
  };
  if (const auto shares = kept_H(); !shares.empty()) {
    // n of T tokens: n (n + 1) / 2 pairs of T (T + 1) / 2 where causal, n^2 of T^2 where not
    double of_heads = 0, kept = 0;
    for (int64_t head = 0; head < H; ++head) {
      const auto share = shares[head];
      of_heads +=
          share * (share * static_cast<double>(seen(head)) + (causal ? (1 - share) * static_cast<double>(T) / 2 : 0));
      kept += share / static_cast<double>(H);
    }
    pairs = std::llround(of_heads);
    of_keys = std::llround(kept * static_cast<double>(of_keys));
  } else {
    for (int64_t slot = 0; slot < outline.slots; ++slot) pairs += seen(slot);
  }
  int64_t ahead = 0;
  for (const auto& adapter : adapters_) {
    count += adapter->flops(T, S);
    ahead += adapter->ahead();
  }
  pairs += outline.slots * T * ahead;
  return count + project->flops(T, 0, outline.slots) + of_keys + position->flops(T, S, outline.slots) +
         weigh->flops(T, S + ahead, outline.slots, pairs, shape_->value_width) + mix->flops(T, outline.slots);
}

void copy_tensors(const torch::nn::Module& from, torch::nn::Module& to) {
  torch::NoGradGuard no_grad;
  const auto copy = [](const auto& source, auto target) {
    if (source.size() != target.size()) throw std::logic_error("copy_tensors: modules of different structure");
    for (auto& item : target) {
      const auto* tensor = source.find(item.key());
      if (!tensor) throw std::logic_error("copy_tensors: no tensor " + item.key());
      item.value().set_data(tensor->detach().clone());
      if (item.value().is_leaf() && tensor->is_floating_point())
        item.value().set_requires_grad(tensor->requires_grad());
    }
  };
  copy(from.named_parameters(), to.named_parameters());
  copy(from.named_buffers(), to.named_buffers());
  to.train(from.is_training());
}

std::shared_ptr<torch::nn::Module> Attention::clone(const std::optional<torch::Device>& device) const {
  auto copy = std::make_shared<Attention>(options_, shape_->width, shape_->memory_width, shape_->cross, shape_->heads);
  copy_tensors(*this, *copy);
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
