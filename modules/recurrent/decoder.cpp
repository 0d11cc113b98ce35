#include "modules/recurrent/decoder.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "modules/attention/head_scale.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

std::string name_of(const char* what, int64_t head) { return what + std::to_string(head); }

/// The call of one step.
AttentionCall call_of_step(const AttentionCall& call, int64_t t) {
  auto one = call;
  one.x_BTD = call.x_BTD.slice(1, t, t + 1);
  if (call.q_pos.defined()) one.q_pos = call.q_pos.slice(-1, t, t + 1);
  if (call.see.query_mask_BT.defined()) one.see.query_mask_BT = call.see.query_mask_BT.slice(1, t, t + 1);
  return one;
}

}  // namespace

const Merges& merges() {
  static const Merges registry =
      Merges("merge", "where heads of a recurrent decoder come together")
          .entry<OneDecoder, NoOptions>("head", "before one decoder", "1804.08050")
          .entry<DecoderOfEach, NoOptions>("decoder", "each has a decoder of its own, whose outputs are summed",
                                           "1804.08050");
  return registry;
}
const Catalogue& merge_catalogue() { return merges().catalogue(); }

RecurrentDecoder::RecurrentDecoder(const DecoderPlace& place, const std::string& name, int64_t joint_width, bool bias)
    : place_(place), shape_(std::make_shared<AttentionShape>()), joint_name_(name) {
  shape_->width = joint_width;
  shape_->memory_width = shape_->head_width = shape_->value_width = place.width;
  shape_->cross = true;
  shape_->original_heads = static_cast<int64_t>(place.heads.items.size());
  shape_->heads.resize(place.heads.items.size());
  std::iota(shape_->heads.begin(), shape_->heads.end(), 0);
  if (place.kept) shape_->heads = *place.kept;
  set_groups(*shape_, shape_->original_heads);
  const EnergyPlace of_each{place.width, place.width};
  for (const auto head : shape_->heads)
    energies_.push_back(register_module(
        name_of("head", head), energies().make(place.heads.items.at(static_cast<std::size_t>(head)), of_each)));
  ConcatenateOptions options;
  options.bias = bias;
  joint_ = register_module(name, std::make_shared<Concatenate>(options, shape_));
}

std::shared_ptr<LstmCell> RecurrentDecoder::add_lstm(const std::string& name) {
  return lstms_.emplace_back(register_module(name, std::make_shared<LstmCell>(2 * place_.width, place_.width)));
}

RecurrentDecoder::Now RecurrentDecoder::begun(const AttentionCall& call) {
  Now now;
  now.h_BSD = call.run.see(At::memory, call.site, call.memory_BSD, &call);
  const auto& mask = call.see.key_mask_BS;
  const auto real = mask.defined() ? mask.to(now.h_BSD.scalar_type()) : torch::ones_like(now.h_BSD.select(2, 0));
  now.looked.assign(energies_.size(), Looked{real / real.sum(1, /*keepdim=*/true), torch::zeros_like(real)});
  for (const auto& energy : energies_) now.keys.push_back(energy->keys(now.h_BSD));
  now.q.assign(lstms_.size(), torch::zeros_like(now.h_BSD.select(1, 0)));
  now.c = now.q;
  return now;
}

RecurrentDecoder::Now RecurrentDecoder::unpacked(const State& state) const {
  auto next = state.stored.begin();
  Now now;
  now.h_BSD = *next++;
  for (std::size_t n = 0; n < energies_.size(); ++n) now.keys.push_back(*next++);
  for (std::size_t n = 0; n < energies_.size(); ++n) {
    auto& looked = now.looked.emplace_back();
    looked.last_BS = *next++;
    looked.sum_BS = *next++;
  }
  for (auto* list : {&now.q, &now.c})
    for (std::size_t i = 0; i < lstms_.size(); ++i) list->push_back(*next++);
  return now;
}

void RecurrentDecoder::pack(const Now& now, State& state) {
  state.stored = {now.h_BSD};
  const auto add = [&](const std::vector<Tensor>& more) {
    state.stored.insert(state.stored.end(), more.begin(), more.end());
  };
  add(now.keys);
  for (const auto& looked : now.looked) add({looked.last_BS, looked.sum_BS});
  add(now.q);
  add(now.c);
}

State RecurrentDecoder::start(const AttentionCall& call) {
  State state;
  pack(begun(call), state);
  return state;
}

Tensor RecurrentDecoder::forward(const AttentionCall& given) {
  auto call = given;
  call.x_BTD = call.run.see(At::x, call.site, given.x_BTD, &given);
  auto now = call.state && !call.state->empty() ? unpacked(*call.state) : begun(call);
  now.scale = head_scale(call.run, call.site, heads(), original_heads());
  std::vector<Tensor> steps;
  for (const auto& c_BD : call.x_BTD.unbind(1))
    steps.push_back(step(c_BD, now, call_of_step(call, static_cast<int64_t>(steps.size()))));
  if (call.state) pack(now, *call.state);
  return said(torch::stack(steps, 1), now, call);
}

Tensor RecurrentDecoder::look(Now& now, const AttentionCall& call) {
  auto& run = call.run;
  std::vector<Tensor> queries;
  for (std::size_t n = 0; n < energies_.size(); ++n) queries.push_back(now.q[asks(n)]);
  if (run.wants(At::q, call.site))
    queries = run.see(At::q, call.site, torch::stack(queries, 1).unsqueeze(2), &call).squeeze(2).unbind(1);
  std::vector<Tensor> energies;
  for (std::size_t n = 0; n < energies_.size(); ++n)
    energies.push_back(energies_[n]->energy(now.keys[n], queries[n], now.looked[n]));
  auto scores_BNTS = (torch::stack(energies, 1) * place_.sharpen).unsqueeze(2);
  if (call.see.key_mask_BS.defined())
    scores_BNTS = scores_BNTS.masked_fill(call.see.key_mask_BS.logical_not().unsqueeze(1).unsqueeze(1),
                                          -std::numeric_limits<double>::infinity());
  scores_BNTS = run.see(At::scores, call.site, scores_BNTS, &call);
  const auto a_BNS = run.see(At::weights, call.site, torch::softmax(scores_BNTS, -1), &call).squeeze(2);
  for (std::size_t n = 0; n < energies_.size(); ++n) {
    const auto a_BS = a_BNS.select(1, static_cast<int64_t>(n));
    now.looked[n] = {a_BS, now.looked[n].sum_BS + a_BS};
  }
  return torch::matmul(a_BNS, now.h_BSD);
}

Tensor RecurrentDecoder::joined(Tensor z, const Now& now, double dropout, const AttentionCall& call) {
  auto& run = call.run;
  if (!has_heads()) return run.see(At::y, call.site, joint_->mix(z, {}), &call);
  z = run.see(At::z, call.site, z, &call);
  if (now.scale.defined()) z = z * now.scale.to(z.scalar_type()).unsqueeze(-1).unsqueeze(-1);
  z = torch::dropout(z, dropout, is_training());
  auto y = joint_->mix(z, {});
  if (run.wants(At::o, call.site)) {
    const auto o = joint_->per_head(z), seen = run.see(At::o, call.site, o, &call);
    // What a tap replaced is added as a difference, so that looking alone leaves the bits as they are.
    if (!seen.is_same(o)) y = y + (seen - o).sum(1);
  }
  return run.see(At::y, call.site, y, &call);
}

void RecurrentDecoder::keep(const std::vector<int64_t>& heads) {
  std::vector<int64_t> positions;
  for (const auto head : heads) {
    const auto found = std::find(shape_->heads.begin(), shape_->heads.end(), head);
    if (found == shape_->heads.end()) throw ShapeError("keep: head " + std::to_string(head) + " is not there");
    positions.push_back(found - shape_->heads.begin());
  }
  std::sort(positions.begin(), positions.end());
  for (auto position = energies_.size(); position-- > 0;) {
    if (std::binary_search(positions.begin(), positions.end(), static_cast<int64_t>(position))) continue;
    drop(position);
    unregister_module(name_of("head", shape_->heads[position]));
    energies_.erase(energies_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  const auto where = axes();
  keep_units(*this, where, positions, keep_heads(*shape_, positions));
}

HeadAxes RecurrentDecoder::axes() const {
  HeadAxes axes;
  joint_->axes(axes.under(joint_name_ + "."));
  return axes;
}

int64_t RecurrentDecoder::flops(int64_t T, int64_t S, bool) const {
  int64_t once = 0, each = flops_of_step() + joint_->flops(1, shape_->H());
  for (const auto& energy : energies_) {
    once += energy->flops_once(S);
    each += energy->flops(S) + 2 * S * place_.width;
  }
  for (const auto& lstm : lstms_) each += lstm->flops();
  return once + T * each;
}

int64_t RecurrentDecoder::cache_numbers() const {
  int64_t count = place_.width;
  for (const auto& energy : energies_) count += energy->width() + 2;
  return count;
}

OneDecoder::OneDecoder(const NoOptions&, const DecoderPlace& place)
    : RecurrentDecoder(place, "join", place.width, /*bias=*/false) {
  add_lstm("decoder");
  output = register_module("output", torch::nn::Linear(place.width, place.vocabulary));
}

Tensor OneDecoder::step(const Tensor& c_BD, Now& now, const AttentionCall& call) {
  const auto r_BN1D = has_heads() ? look(now, call).unsqueeze(2) : c_BD.unsqueeze(1).slice(1, 0, 0).unsqueeze(2);
  const auto y_BD = joined(r_BN1D, now, /*dropout=*/0, call).squeeze(1);
  std::tie(now.q[0], now.c[0]) = lstms_[0]->step(torch::cat({c_BD, y_BD}, -1), now.q[0], now.c[0]);
  return now.q[0];
}

Tensor OneDecoder::said(const Tensor& q_BTD, const Now&, const AttentionCall&) {
  return torch::dropout(q_BTD, place_.dropout, is_training());
}

DecoderOfEach::DecoderOfEach(const NoOptions&, const DecoderPlace& place)
    : RecurrentDecoder(place, "output", place.vocabulary, /*bias=*/true) {
  for (const auto head : heads()) add_lstm(name_of("decoder", head));
}

Tensor DecoderOfEach::step(const Tensor& c_BD, Now& now, const AttentionCall& call) {
  if (!has_heads()) return c_BD.unsqueeze(1).slice(1, 0, 0);
  const auto r = look(now, call).unbind(1);
  for (std::size_t n = 0; n < lstms_.size(); ++n)
    std::tie(now.q[n], now.c[n]) = lstms_[n]->step(torch::cat({c_BD, r[n]}, -1), now.q[n], now.c[n]);
  return torch::stack(now.q, 1);
}

Tensor DecoderOfEach::said(const Tensor& q_BTND, const Now& now, const AttentionCall& call) {
  return joined(q_BTND.transpose(1, 2), now, place_.dropout, call);
}

void DecoderOfEach::drop(std::size_t position) {
  unregister_module(name_of("decoder", heads()[position]));
  lstms_.erase(lstms_.begin() + static_cast<std::ptrdiff_t>(position));
}

}  // namespace headlab
