#include "modules/attention/attention.h"

#include <algorithm>
#include <numeric>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// The taps of the gates that must see one call, until its end.
class Observers {
 public:
  Observers(const std::vector<std::shared_ptr<Gate>>& gates, const AttentionCall& call, const std::vector<int64_t>& group_of)
      : taps_(call.run.taps), before_(taps_.size()) {
    for (const auto& gate : gates)
      if (auto tap = gate->observer(call, group_of)) {
        taps_.push_back(tap.get());
        own_.push_back(std::move(tap));
      }
  }
  ~Observers() { taps_.resize(before_); }
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

 private:
  std::vector<Tap*>& taps_;
  std::size_t before_;
  std::vector<std::unique_ptr<Tap>> own_;
};

}  // namespace

void AttentionOptions::describe(Fields& fields) {
  fields.add("heads", heads, "number of attention heads").at_least(1);
  fields.add("head_width", head_width, "width of a head's queries and keys").at_least(1).means("absent: d_model / heads");
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
    throw ShapeError("attention.heads: expected a divisor of d_model (" + std::to_string(width) + ") or a head_width, got " +
                     std::to_string(options.heads));
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

  const bool from_start = !call.goes_on && (!call.state || call.state->empty());
  const bool remembered = call.state && call.state->fixed && !call.state->empty();
  Tensor q;
  std::vector<Tensor> kv;
  if (remembered) {
    q = project->query(x_BTD, plan);
    kv = call.state->stored;
  } else {
    if (call.is_self()) {
      auto all = project->all(x_BTD, plan);
      q = all[0];
      kv = {all[1], all[2]};
    } else {
      const auto memory_BSD = run.see(At::memory, call.site, call.memory_BSD, &call);
      if (memory_BSD.dim() != 3 || memory_BSD.size(2) != shape_->memory_width)
        throw wrong_shape(to_string(call.site) + ".memory", "[B, S, " + std::to_string(shape_->memory_width) + "]", memory_BSD);
      q = project->query(x_BTD, plan);
      kv = project->remember(memory_BSD);
    }
    kv[0] = position->rotate(kv[0], call.k_pos);
    if (call.state) {
      call.state->append(kv);
      kv = call.state->stored;
    }
  }
  const auto context_BGSK = kv[0];
  auto group_of = plan.chosen_BTk.defined() ? std::vector<int64_t>(q.size(1), 0) : shape_->group_of;
  for (const auto& adapter : adapters_) {
    q = adapter->query(q);
    kv = adapter->expand(kv);
    group_of = adapter->group_of(group_of);
    call.ahead += adapter->ahead();
  }
  const Observers observers(gates_, call, group_of);
  q = run.see(At::q, call.site, position->query(q, call.q_pos), &call);
  const auto k = run.see(At::k, call.site, kv[0], &call);
  const auto v = run.see(At::v, call.site, kv[1], &call);

  auto z = weigh->forward(q, k, v, group_of, plan, bias(call, q, context_BGSK, from_start), call, from_start);
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

Tensor Attention::bias(const AttentionCall& call, const Tensor& q_BHTK, const Tensor& k_BGSK, bool from_start) const {
  if (!position->has_bias()) return {};
  auto k_pos = call.k_pos;
  if (!from_start) {  // cached keys stand one after another, the last where the last query is
    const auto place = places_of(k_BGSK);
    k_pos = place - place.slice(0, -1) + call.q_pos.slice(-1, -1);
  }
  return position->bias(q_BHTK, call.q_pos, k_pos).to(q_BHTK.scalar_type());
}

Tensor Attention::scaled(const Tensor& z_BHTK, const HeadPlan& plan, const AttentionCall& call) const {
  const auto found = call.run.scale.find(call.site.stack);
  if (found == call.run.scale.end() || !found->second.defined()) return z_BHTK;
  const auto& all = found->second;  // [L,H] or [B,L,H]
  if ((all.dim() != 2 && all.dim() != 3) || all.size(-1) < shape_->original_heads || all.size(-2) <= call.site.layer)
    throw wrong_shape(stack_name(call.site.stack) + " scale",
                      "[layers, heads] or [B, layers, heads] with at least " + std::to_string(call.site.layer + 1) +
                          " layers and " + std::to_string(shape_->original_heads) + " heads",
                      all);
  auto scale = all.select(-2, call.site.layer);  // [H] or [B,H]
  if (scale.dim() == 2 && call.run.rows_B.defined()) scale = scale.index_select(0, call.run.rows_B);
  scale = pick(scale, -1, shape_->heads).to(z_BHTK.scalar_type());
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
    if (found == shape_->heads.end())
      throw ShapeError("keep: head " + std::to_string(head) + " is not there");
    positions.push_back(found - shape_->heads.begin());
  }
  for (const auto& gate : gates_) gate->keep(positions);
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
  int64_t pairs = 0;
  for (int64_t slot = 0; slot < outline.slots; ++slot)
    pairs += seen_pairs(T, S, causal, outline.window_H.empty() ? 0 : outline.window_H[slot]);
  int64_t ahead = 0;
  for (const auto& adapter : adapters_) {
    count += adapter->flops(T, S);
    ahead += adapter->ahead();
  }
  pairs += outline.slots * T * ahead;
  return count + project->flops(T, S, outline.slots) + position->flops(T, S, outline.slots) +
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
      if (item.value().is_leaf() && tensor->is_floating_point()) item.value().set_requires_grad(tensor->requires_grad());
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
