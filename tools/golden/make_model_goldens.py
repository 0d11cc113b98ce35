#!/usr/bin/env python3
"""Writes the goldens of whole models: tests/golden/<case>_<dtype>.safetensors and tests/golden/model_goldens.json.

An encoder-decoder, a decoder-only and an encoder-only Transformer written from the formulas alone: explicit softmax
attention, layer normalisation, label smoothing and AdamW, with gradients by autograd. Nothing of torch.nn or
torch.optim is used, so that an agreement with LibTorch's modules or kernels says something.

    python tools/golden/make_model_goldens.py [--output tests/golden]

Each file holds, by name (shapes in brackets; B examples, S source and T target positions, N training steps):

    source [B,S]  source_lengths [B]          where the model has an encoder
    target_in [B,T]  target_lengths [B]       where the model has a decoder
    target_out [B,T], or [B,S] of an encoder-only model
    train.<each of these> [N,...]             the batches of the training steps; the first is the batch above
    initial.<parameter>                       before training; representable in float32 in every file
    encoder_output [B,S,D]                    what the decoder reads, where there are both
    logits [B,T,V]  loss [1]  gradient.<parameter>     of the batch above at the initial parameters
    losses [N]                                before each training step's update
    final.<parameter>                         after the last step

Padding is on the right. Logits at padded positions are as computed (decoder self-attention is masked causally only, and
padded source positions are hidden as keys only); a comparison should skip them. Where softmax makes an output
independent of a parameter (key biases without rotary positions), the true gradient is 0, what is computed is rounding
noise, and Adam scales that noise up in float32: model_goldens.json lists these rows as "zero_gradient", and
a comparison of the final parameters should leave them out.

On one machine with the same versions the written bytes are the same each time.
"""

import argparse
import json
import math
import pathlib
import platform
from dataclasses import asdict, dataclass

import safetensors
import torch
from safetensors.torch import save_file

PAD, BOS, EOS, FIRST_WORD = 0, 1, 2, 3
LABEL_SMOOTHING = 0.1
NORM_EPSILON = 1e-5
ADAMW = {"learning_rate": 1e-2, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.01}
STEPS = 10
SEED = 20170612
DTYPES = {"f64": torch.float64, "f32": torch.float32}


@dataclass(frozen=True)
class Case:
    """One model. Sizes are small and unequal where they may be, so that a transposed axis shows."""

    name: str
    encoder_layers: int
    decoder_layers: int
    norm: str  # "pre" or "post"
    activation: str  # "relu" or "gelu" (exact, by erf)
    positions: str  # "sinusoidal" or "rope"
    groups: int = 4  # key/value heads; query head h reads group h // (heads / groups)
    heads: int = 4
    width: int = 16
    inner: int = 32
    vocabulary: int = 37
    batch: int = 3
    source_length: int = 7
    target_length: int = 6
    rope_base: float = 10000.0

    @property
    def head_width(self):
        return self.width // self.heads

    @property
    def cross(self):
        return self.encoder_layers > 0 and self.decoder_layers > 0


CASES = [
    Case("encoder_decoder_pre_relu", 2, 2, "pre", "relu", "sinusoidal"),
    Case("encoder_decoder_post_gelu", 2, 2, "post", "gelu", "sinusoidal"),
    Case("decoder_pre_gelu_rope_grouped", 0, 2, "pre", "gelu", "rope", groups=2),
    Case("encoder_post_relu", 2, 0, "post", "relu", "sinusoidal"),
]


# Names and shapes of the parameters; the one place that knows them. Matrices are [out, in].

TOKENS = "tokens.weight"
STACK_NORM = "{stack}.norm"
LAYER = "{stack}.layers.{layer}"
SELF_ATTENTION, CROSS_ATTENTION, FEED_FORWARD = "self_attention", "cross_attention", "feed_forward"
NORM_OF = "{sublayer}_norm"
SELF_WEIGHT, SELF_BIAS = "project.weight", "project.bias"  # rows: queries, keys, values; head-major in each
QUERY_WEIGHT, QUERY_BIAS = "project.query_weight", "project.query_bias"
MEMORY_WEIGHT, MEMORY_BIAS = "project.memory_weight", "project.memory_bias"  # rows: keys, values
MIX_WEIGHT, MIX_BIAS = "mix.weight", "mix.bias"
INNER_WEIGHT, INNER_BIAS = "inner.weight", "inner.bias"
OUTER_WEIGHT, OUTER_BIAS = "outer.weight", "outer.bias"


def stacks(case):
    """[(stack, layers, sublayers)] in the order of computation."""
    encoder = ("encoder", case.encoder_layers, [SELF_ATTENTION, FEED_FORWARD])
    decoder = ("decoder", case.decoder_layers, [SELF_ATTENTION] + [CROSS_ATTENTION] * case.cross + [FEED_FORWARD])
    return [stack for stack in (encoder, decoder) if stack[1] > 0]


def sublayer_shapes(case, sublayer):
    d, f, q, kv = case.width, case.inner, case.heads * case.head_width, case.groups * case.head_width
    mix = {MIX_WEIGHT: (d, q), MIX_BIAS: (d,)}
    return {
        SELF_ATTENTION: {SELF_WEIGHT: (q + 2 * kv, d), SELF_BIAS: (q + 2 * kv,), **mix},
        CROSS_ATTENTION: {QUERY_WEIGHT: (q, d), QUERY_BIAS: (q,),
                          MEMORY_WEIGHT: (2 * kv, d), MEMORY_BIAS: (2 * kv,), **mix},
        FEED_FORWARD: {INNER_WEIGHT: (f, d), INNER_BIAS: (f,), OUTER_WEIGHT: (d, f), OUTER_BIAS: (d,)},
    }[sublayer]


def parameter_shapes(case):
    shapes = {TOKENS: (case.vocabulary, case.width)}

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = (case.width,)

    for stack, layers, sublayers in stacks(case):
        for layer in range(layers):
            prefix = LAYER.format(stack=stack, layer=layer)
            for sublayer in sublayers:
                for name, shape in sublayer_shapes(case, sublayer).items():
                    shapes[f"{prefix}.{sublayer}.{name}"] = shape
                norm(f"{prefix}.{NORM_OF.format(sublayer=sublayer)}")
        if case.norm == "pre":
            norm(STACK_NORM.format(stack=stack))
    return shapes


def zero_gradient_rows(case):
    """{parameter: [first, end]}: key biases add the same to all scores of a query, and softmax takes that away."""
    if case.positions == "rope":  # a rotated bias adds what depends on the distance
        return {}
    q, kv = case.heads * case.head_width, case.groups * case.head_width
    rows = {}
    for name in parameter_shapes(case):
        if name.endswith(SELF_BIAS):
            rows[name] = [q, q + kv]
        elif name.endswith(MEMORY_BIAS):
            rows[name] = [0, kv]
    return rows


# The model


def sinusoidal(length, width, like):
    """PE(p, 2i) = sin(p w_i), PE(p, 2i+1) = cos(p w_i), w_i = 10000^(-2i/D): [length, width]."""
    table = torch.zeros(length, width, dtype=torch.float64)
    for p in range(length):
        for c in range(width):
            angle = p * 10000.0 ** (-2 * (c // 2) / width)
            table[p, c] = math.sin(angle) if c % 2 == 0 else math.cos(angle)
    return table.to(like)


def rotate(x_BTHK, base):
    """RoPE: the pair (2i, 2i+1) of each head turns by the angle p base^(-2i/K)."""
    length, width = x_BTHK.shape[1], x_BTHK.shape[3]
    angle = torch.tensor([[p * base ** (-2 * i / width) for i in range(width // 2)] for p in range(length)],
                         dtype=torch.float64)
    cos, sin = angle.cos().to(x_BTHK)[:, None, :], angle.sin().to(x_BTHK)[:, None, :]
    even, odd = x_BTHK[..., 0::2], x_BTHK[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).reshape(x_BTHK.shape)


def affine(x, weight, bias):
    return torch.einsum("...i,oi->...o", x, weight) + bias


def layer_norm(x, p, name):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / (variance + NORM_EPSILON).sqrt() * p[name + ".weight"] + p[name + ".bias"]


def attention(x_BTD, memory_BSD, visible_BTS, p, site, case):
    """softmax(Q K^T / sqrt(K)) V over visible keys, heads concatenated and projected; memory None: self-attention."""
    q_rows, kv_rows = case.heads * case.head_width, case.groups * case.head_width
    if memory_BSD is None:
        qkv = affine(x_BTD, p[f"{site}.{SELF_WEIGHT}"], p[f"{site}.{SELF_BIAS}"])
        q, k, v = qkv.split([q_rows, kv_rows, kv_rows], -1)
    else:
        q = affine(x_BTD, p[f"{site}.{QUERY_WEIGHT}"], p[f"{site}.{QUERY_BIAS}"])
        kv = affine(memory_BSD, p[f"{site}.{MEMORY_WEIGHT}"], p[f"{site}.{MEMORY_BIAS}"])
        k, v = kv.split([kv_rows, kv_rows], -1)
    q, k, v = (x.unflatten(-1, (-1, case.head_width)) for x in (q, k, v))  # [B,T,H,K], [B,S,G,K]
    if case.positions == "rope":
        q, k = rotate(q, case.rope_base), rotate(k, case.rope_base)
    group_of = [h // (case.heads // case.groups) for h in range(case.heads)]
    k, v = k[:, :, group_of], v[:, :, group_of]  # [B,S,H,K]
    scores = torch.einsum("bthk,bshk->bhts", q, k) / math.sqrt(case.head_width)
    scores = scores.masked_fill(~visible_BTS[:, None], -math.inf)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    z = torch.einsum("bhts,bshk->bthk", weights, v).flatten(2)
    return affine(z, p[f"{site}.{MIX_WEIGHT}"], p[f"{site}.{MIX_BIAS}"])


ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
}


def feed_forward(x, p, site, case):
    hidden = ACTIVATIONS[case.activation](affine(x, p[f"{site}.{INNER_WEIGHT}"], p[f"{site}.{INNER_BIAS}"]))
    return affine(hidden, p[f"{site}.{OUTER_WEIGHT}"], p[f"{site}.{OUTER_BIAS}"])


def run_stack(stack, ids, visible_BTT, memory_BSD, memory_visible_BTS, p, case):
    """Embedding, layers and (pre-norm) the last norm: [B,T,D]."""
    x = p[TOKENS][ids] * math.sqrt(case.width)
    if case.positions == "sinusoidal":
        x = x + sinusoidal(ids.shape[1], case.width, x)
    name, layers, sublayers = stack
    for layer in range(layers):
        prefix = LAYER.format(stack=name, layer=layer)
        for sublayer in sublayers:
            site, norm = f"{prefix}.{sublayer}", f"{prefix}.{NORM_OF.format(sublayer=sublayer)}"
            apply = {
                SELF_ATTENTION: lambda y: attention(y, None, visible_BTT, p, site, case),
                CROSS_ATTENTION: lambda y: attention(y, memory_BSD, memory_visible_BTS, p, site, case),
                FEED_FORWARD: lambda y: feed_forward(y, p, site, case),
            }[sublayer]
            x = x + apply(layer_norm(x, p, norm)) if case.norm == "pre" else layer_norm(x + apply(x), p, norm)
    return layer_norm(x, p, STACK_NORM.format(stack=name)) if case.norm == "pre" else x


def forward(p, batch, case):
    """The logits [B,T,V] and what the encoder gave [B,S,D] (None without one)."""
    x = encoded = key_visible_BS = None
    for stack in stacks(case):
        if stack[0] == "encoder":
            ids = batch["source"]
            key_visible_BS = torch.arange(ids.shape[1])[None] < batch["source_lengths"][:, None]
            visible = key_visible_BS[:, None, :].expand(-1, ids.shape[1], -1)
            x = encoded = run_stack(stack, ids, visible, None, None, p, case)
        else:
            ids = batch["target_in"]
            causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None].expand(len(ids), -1, -1)
            memory_visible = key_visible_BS[:, None, :].expand(-1, ids.shape[1], -1) if case.cross else None
            x = run_stack(stack, ids, causal, encoded, memory_visible, p, case)
    return torch.einsum("btd,vd->btv", x, p[TOKENS]), encoded


def smoothed_loss(logits, target):
    """- sum_v ((1 - e) onehot_v + e / V) log softmax(logits)_v, its mean over target tokens that are not padding."""
    top = logits.amax(-1, keepdim=True)
    log_p = logits - top - (logits - top).exp().sum(-1, keepdim=True).log()
    wanted = torch.full_like(log_p, LABEL_SMOOTHING / log_p.shape[-1])
    wanted.scatter_add_(-1, target[..., None], torch.full_like(log_p[..., :1], 1 - LABEL_SMOOTHING))
    kept = target != PAD
    return -((wanted * log_p).sum(-1) * kept).sum() / kept.sum()


def loss_and_gradients(p, batch, case):
    leaves = {name: value.clone().requires_grad_() for name, value in p.items()}
    logits, encoded = forward(leaves, batch, case)
    loss = smoothed_loss(logits, batch["target_out"])
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    return loss.detach(), logits.detach(), encoded, dict(zip(leaves, gradients))


def train(p, batches, case):
    """AdamW: decay p <- p - lr wd p, then p <- p - lr m^ / (sqrt(v^) + eps). Returns the losses and the parameters."""
    lr, b1, b2, eps, decay = (ADAMW[k] for k in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"))
    p = {name: value.clone() for name, value in p.items()}
    m = {name: torch.zeros_like(value) for name, value in p.items()}
    v = {name: torch.zeros_like(value) for name, value in p.items()}
    losses = []
    for step, batch in enumerate(batches, start=1):
        loss, _, _, gradients = loss_and_gradients(p, batch, case)
        losses.append(loss)
        for name, g in gradients.items():
            m[name] = b1 * m[name] + (1 - b1) * g
            v[name] = b2 * v[name] + (1 - b2) * g * g
            m_hat, v_hat = m[name] / (1 - b1**step), v[name] / (1 - b2**step)
            p[name] = p[name] - lr * decay * p[name] - lr * m_hat / (v_hat.sqrt() + eps)
    return torch.stack(losses), p


# Data


def initial_parameters(case, generator):
    """Drawn in float32; biases and norms are away from 0 and 1, so that a forgotten one shows."""
    p = {}
    for name, shape in parameter_shapes(case).items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float32)
        if name.endswith("norm.weight"):
            p[name] = 1 + 0.1 * noise
        elif len(shape) == 1:
            p[name] = 0.1 * noise
        else:
            p[name] = noise / math.sqrt(case.width)
    return p


def draw_lengths(count, longest, generator):
    """Between 2 and `longest`, one of them `longest` itself."""
    lengths = torch.randint(2, longest + 1, (count,), generator=generator)
    lengths[torch.randint(count, (1,), generator=generator)] = longest
    return lengths


def draw_ids(lengths, longest, case, generator):
    ids = torch.randint(FIRST_WORD, case.vocabulary, (len(lengths), longest), generator=generator)
    return ids.masked_fill(torch.arange(longest)[None] >= lengths[:, None], PAD)


def draw_batch(case, generator):
    batch = {}
    if case.encoder_layers > 0:
        batch["source_lengths"] = draw_lengths(case.batch, case.source_length, generator)
        batch["source"] = draw_ids(batch["source_lengths"], case.source_length, case, generator)
    if case.decoder_layers > 0:
        lengths = draw_lengths(case.batch, case.target_length, generator)
        words = draw_ids(lengths - 1, case.target_length, case, generator)
        batch["target_lengths"] = lengths
        batch["target_in"] = torch.cat([torch.full((case.batch, 1), BOS), words[:, :-1]], dim=1)
        batch["target_out"] = words.scatter(1, lengths[:, None] - 1, EOS)
    else:
        batch["target_out"] = draw_ids(batch["source_lengths"], case.source_length, case, generator)
    return batch


# Files


def golden(case, dtype, index):
    generator = torch.Generator().manual_seed(SEED + index)
    p = {name: value.to(dtype) for name, value in initial_parameters(case, generator).items()}
    batches = [draw_batch(case, generator) for _ in range(STEPS)]
    loss, logits, encoded, gradients = loss_and_gradients(p, batches[0], case)
    losses, final = train(p, batches, case)
    tensors = {**batches[0], "logits": logits, "loss": loss[None], "losses": losses}
    if case.cross:
        tensors["encoder_output"] = encoded.detach()
    for name in batches[0]:
        tensors["train." + name] = torch.stack([batch[name] for batch in batches])
    for prefix, group in (("initial.", p), ("gradient.", gradients), ("final.", final)):
        tensors.update({prefix + name: value for name, value in group.items()})
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def main():
    parser = argparse.ArgumentParser(description="writes the goldens of whole models")
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=pathlib.Path, default=root / "tests" / "golden")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)

    about = {
        "made_by": "python tools/golden/make_model_goldens.py",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "safetensors": safetensors.__version__},
        "seed": SEED,
        "ids": {"pad": PAD, "bos": BOS, "eos": EOS},
        "label_smoothing": LABEL_SMOOTHING,
        "norm_epsilon": NORM_EPSILON,
        "adamw": ADAMW,
        "cases": [],
    }
    for index, case in enumerate(CASES):
        files = {}
        for suffix, dtype in DTYPES.items():
            files[suffix] = f"{case.name}_{suffix}.safetensors"
            save_file(golden(case, dtype, index), output / files[suffix])
        about["cases"].append({**asdict(case), "head_width": case.head_width, "files": files,
                               "parameters": {name: list(shape) for name, shape in parameter_shapes(case).items()},
                               "zero_gradient": zero_gradient_rows(case)})
    (output / "model_goldens.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
