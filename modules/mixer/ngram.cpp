#include "modules/mixer/ngram.h"

#include <algorithm>
#include <numeric>

#include "modules/attention/head_scale.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void NgramStyle::describe_style(Fields& fields) {
  fields
      .add("n", n,
           "frames that a head reads: the token and those before it; where a text is seen from both sides, as many "
           "again after it")
      .at_least(1)
      .unit("tokens");
  fields.add("activation", activation, "what is done to each number that a head gives").one_of({"none", "relu"});
  fields.add("dropout", dropout, "share of what heads give that is dropped in training, before the output's matrix")
      .at_least(0)
      .below(1);
  fields.add("bias", bias, "add learned biases, to each head and to the output");
}

void NgramOptions::describe(Fields& fields) {
  fields.add("heads", heads, "chunks of a token's vector, each with a matrix of its own; a divisor of d_model")
      .at_least(1);
  describe_style(fields);
}

Ngram::Ngram(const NgramOptions& options, int64_t width, bool causal, const std::optional<std::vector<int64_t>>& kept,
             bool output_bias)
    : options_(options),
      causal_(causal),
      shape_(std::make_shared<AttentionShape>()),
      frames_(causal ? options.n : 2 * options.n - 1) {
  if (width % options.heads != 0)
    throw ShapeError("ngram.heads: expected a divisor of d_model (" + std::to_string(width) + "), got " +
                     std::to_string(options.heads));
  shape_->width = shape_->memory_width = width;
  shape_->head_width = shape_->value_width = width / options.heads;
  shape_->original_heads = options.heads;
  if (kept) {
    shape_->heads = *kept;
  } else {
    shape_->heads.resize(options.heads);
    std::iota(shape_->heads.begin(), shape_->heads.end(), 0);
  }
  set_groups(*shape_, options.heads);
  const auto H = shape_->H(), K = shape_->head_width;
  weight = register_parameter("weight", torch::empty({H, K, frames_ * K}));
  if (options.bias) bias = register_parameter("bias", torch::zeros({H, K}));
  ConcatenateOptions output;
  output.bias = options.bias && output_bias;
  mix = register_module("mix", std::make_shared<Concatenate>(output, shape_));
}

void Ngram::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, weight.size(2), weight.size(1), generator("weight"));
  if (bias.defined()) bias.zero_();
}

// The chunks of the heads that are there, of the text's tokens and the frames around them: [B, T + frames - 1, H, K].
Tensor Ngram::framed(const AttentionCall& call) const {
  const auto& x_BSD = call.memory_BSD;
  const auto N = options_.n;
  const bool cached = call.state && !call.state->empty();
  auto x_BSHK =
      pick(x_BSD.unflatten(-1, at::IntArrayRef{shape_->original_heads, shape_->head_width}), 2, shape_->heads);
  if (call.see.key_mask_BS.defined()) {
    const auto mask_BS = cached ? call.see.key_mask_BS.slice(1, -x_BSD.size(1)) : call.see.key_mask_BS;
    x_BSHK = x_BSHK.masked_fill(mask_BS.logical_not().unsqueeze(-1).unsqueeze(-1), 0);
  }
  auto all = cached ? torch::cat({call.state->stored.front().transpose(1, 2), x_BSHK}, 1)
                    : torch::constant_pad_nd(x_BSHK, {0, 0, 0, 0, N - 1, frames_ - N});
  if (call.goes_on) all = all.slice(1, x_BSD.size(1) - call.x_BTD.size(1));
  if (call.state && N > 1) call.state->stored = {all.slice(1, -(N - 1)).transpose(1, 2).clone()};
  return all;
}

// The frames that each token reads, oldest first, hidden ones as zeros: [B,T,H, frames K]. No length is read as a
// number. `allowed` has a column for each token up to the last; how many there are before the frames does not matter,
// since it is read from its end.
Tensor Ngram::windows(const Tensor& framed, Tensor allowed) const {
  if (allowed.defined())
    allowed = torch::constant_pad_nd(allowed, {options_.n - 1, frames_ - options_.n}).flip({-2, -1});
  std::vector<Tensor> frames;
  for (int64_t j = 0; j < frames_; ++j) {
    auto frame = j + 1 < frames_ ? framed.slice(1, j, j + 1 - frames_) : framed.slice(1, j);
    if (allowed.defined()) {
      const auto hidden = allowed.diagonal(frames_ - 1 - j, -2, -1).flip({-1}).logical_not();
      frame = frame.masked_fill(hidden.unsqueeze(-1).unsqueeze(-1), 0);
    }
    frames.push_back(frame);
  }
  return torch::cat(frames, -1);
}

// Each head's matrix times its windows, [B,T,H,I] -> [B,H,T,K].
Tensor Ngram::product(const Tensor& windows_BTHI) const {
  if (!relevance::flows()) {
    const auto z_BHTK = torch::einsum("bthi,hki->bhtk", {windows_BTHI, weight});
    return bias.defined() ? z_BHTK + bias.unsqueeze(1) : z_BHTK;
  }
  std::vector<Tensor> of_head;
  for (int64_t h = 0; h < shape_->H(); ++h)
    of_head.push_back(relevance::linear(windows_BTHI.select(2, h), weight[h], bias.defined() ? bias[h] : bias));
  return torch::stack(of_head, 1);
}

void Ngram::check(const AttentionCall& call) const {
  if (call.x_BTD.dim() != 3 || call.x_BTD.size(2) != shape_->width)
    throw wrong_shape(to_string(call.site) + ".x", "[B, T, " + std::to_string(shape_->width) + "]", call.x_BTD);
  if (call.see.causal != causal_)
    throw std::logic_error("ngram: " + to_string(call.site) + " was made " + (causal_ ? "" : "not ") +
                           "to be causal, and is called otherwise");
}

Tensor Ngram::heads_of(const AttentionCall& call) {
  check(call);
  const auto z = product(windows(framed(call), call.see.allowed_BTS));
  return options_.activation == "relu" ? relevance::through(z, torch::relu(z)) : z;
}

Tensor Ngram::scaled(const Tensor& z_BHTK, const AttentionCall& call) {
  auto z = z_BHTK;
  if (auto scale = head_scale(call.run, call.site, shape_->heads, shape_->original_heads); scale.defined())
    z = relevance::through(z, z * scale.to(z.scalar_type()).unsqueeze(-1).unsqueeze(-1));
  return options_.dropout > 0 ? torch::dropout(z, options_.dropout, is_training()) : z;
}

Tensor Ngram::forward(const AttentionCall& given) {
  auto& run = given.run;
  auto call = given;
  call.x_BTD = run.see(At::x, given.site, given.x_BTD, &given);
  if (!call.goes_on) call.memory_BSD = call.x_BTD;
  check(call);
  if (shape_->H() == 0)
    return run.see(At::y, call.site, relevance::through(call.x_BTD, mix->nothing().expand_as(call.x_BTD)), &call);

  const auto z = scaled(run.see(At::z, call.site, heads_of(call), &call), call);
  auto y = mix->mix(z, {});
  if (run.wants(At::o, call.site)) {
    const auto o = mix->per_head(z), seen = run.see(At::o, call.site, o, &call);
    // What a tap replaced is added as a difference, so that looking alone leaves the bits as they are.
    if (!seen.is_same(o)) y = y + (seen - o).sum(1);
  }
  return run.see(At::y, call.site, y, &call);
}

void Ngram::keep(const std::vector<int64_t>& heads) {
  std::vector<int64_t> positions;
  for (auto head : heads) {
    const auto found = std::find(shape_->heads.begin(), shape_->heads.end(), head);
    if (found == shape_->heads.end()) throw ShapeError("keep: head " + std::to_string(head) + " is not there");
    positions.push_back(found - shape_->heads.begin());
  }
  const auto where = axes();
  keep_units(*this, where, positions, keep_heads(*shape_, positions));
}

HeadAxes Ngram::axes() const {
  HeadAxes axes;
  axes.head("weight", 0, 1);
  if (bias.defined()) axes.head("bias", 0, 1);
  mix->axes(axes.under("mix."));
  return axes;
}

int64_t Ngram::flops(int64_t T, int64_t, bool) const {
  const auto H = shape_->H();
  return H == 0 ? 0 : 2 * T * weight.numel() + mix->flops(T, H);
}

}  // namespace headlab
