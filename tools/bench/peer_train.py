#!/usr/bin/env python3
"""The peer of `headlab bench train`: the same encoder-decoder, trained by hand-written eager PyTorch.

Pre-norm layers with a last norm on each stack, one matrix for both embeddings (scaled by sqrt(width), sinusoidal
positions) and the output, ReLU feed-forward of 4 x width, dropout on the embeddings and each sublayer's output, label smoothing 0.1,
gradients clipped to norm 1, AdamW at a constant rate. Written to be fast: fused query/key/value projections,
scaled_dot_product_attention without masks (the data has no padding), one look-up for both embeddings, fused AdamW, and
nothing in the loop that waits for a value.

Prints one line of JSON: losses (of each step, before its update), tokens_per_s, seconds, timed_steps, versions.
The first tenth of the steps warms up and is not timed; tokens are target tokens. README.md has the contract.

    python tools/bench/peer_train.py --width 256 --layers 3 --heads 8 --vocabulary 8000 --batch 32 --length 32
"""

import argparse
import json
import math
import pathlib
import platform
import time

import torch
import torch.nn.functional as F

PAD, FIRST_WORD = 0, 3
LABEL_SMOOTHING = 0.1
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 1e-3, (0.9, 0.98), 1e-9, 0.01
CLIP_NORM = 1.0

STACKS = {"encoder": ("self_attention", "feed_forward"),
          "decoder": ("self_attention", "cross_attention", "feed_forward")}


def parameter_shapes(width, layers, vocabulary):
    """{name: shape}; matrices are [out, in], rows of fused projections are queries, keys, values."""
    d = width
    of_sublayer = {
        "self_attention": {"project.weight": (3 * d, d), "project.bias": (3 * d,),
                           "mix.weight": (d, d), "mix.bias": (d,)},
        "cross_attention": {"project.query_weight": (d, d), "project.query_bias": (d,),
                            "project.memory_weight": (2 * d, d), "project.memory_bias": (2 * d,),
                            "mix.weight": (d, d), "mix.bias": (d,)},
        "feed_forward": {"inner.weight": (4 * d, d), "inner.bias": (4 * d,),
                         "outer.weight": (d, 4 * d), "outer.bias": (d,)},
    }
    shapes = {"tokens.weight": (vocabulary, d)}
    for stack, sublayers in STACKS.items():
        for layer in range(layers):
            for sublayer in sublayers:
                prefix = f"{stack}.layers.{layer}.{sublayer}"
                shapes |= {f"{prefix}.{name}": shape for name, shape in of_sublayer[sublayer].items()}
                shapes |= {f"{prefix}_norm.weight": (d,), f"{prefix}_norm.bias": (d,)}
        shapes |= {f"{stack}.norm.weight": (d,), f"{stack}.norm.bias": (d,)}
    return shapes


def initial_weights(args):
    generator = torch.Generator().manual_seed(args.seed)
    weights = {}
    for name, shape in parameter_shapes(args.width, args.layers, args.vocabulary).items():
        if name == "tokens.weight":
            weights[name] = torch.randn(shape, generator=generator) * args.width**-0.5
        elif len(shape) == 2:
            weights[name] = (torch.rand(shape, generator=generator) * 2 - 1) * math.sqrt(6 / sum(shape))
        else:
            weights[name] = torch.full(shape, 1.0 if name.endswith("norm.weight") else 0.0)
    return weights


def random_ids(args):
    """source [N,B,T], target [N,B,T+1] (read without its last, wanted without its first token); no padding."""
    generator = torch.Generator().manual_seed(args.seed + 1)
    shape = (args.steps, args.batch, args.length)
    draw = lambda shape: torch.randint(FIRST_WORD, args.vocabulary, shape, generator=generator)
    return {"source": draw(shape), "target": draw((*shape[:2], args.length + 1))}


def sinusoidal(length, width):
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width].float()


class Model:
    """Encoder and decoder over a dictionary of parameters, grouped by sublayer once, so that steps look up nothing."""

    def __init__(self, weights, args):
        self.parameters = {name: value.clone().requires_grad_() for name, value in weights.items()}
        self.width, self.heads, self.dropout = args.width, args.heads, args.dropout
        self.tokens = self.parameters["tokens.weight"]
        self.positions = sinusoidal(args.length, args.width)
        names = {"self_attention": ["project.weight", "project.bias", "mix.weight", "mix.bias"],
                 "cross_attention": ["project.query_weight", "project.query_bias", "project.memory_weight",
                                     "project.memory_bias", "mix.weight", "mix.bias"],
                 "feed_forward": ["inner.weight", "inner.bias", "outer.weight", "outer.bias"]}
        get = lambda prefix, suffixes: [self.parameters[prefix + suffix] for suffix in suffixes]
        norm = lambda prefix: get(prefix, [".weight", ".bias"])
        self.layers = {stack: [[(norm(f"{stack}.layers.{layer}.{sublayer}_norm"),
                                 get(f"{stack}.layers.{layer}.{sublayer}.", names[sublayer])) for sublayer in sublayers]
                               for layer in range(args.layers)] for stack, sublayers in STACKS.items()}
        self.last_norm = {stack: norm(f"{stack}.norm") for stack in STACKS}

    def norm(self, x, weight_and_bias):
        return F.layer_norm(x, (self.width,), *weight_and_bias)

    def split_heads(self, x, parts):
        """[B,T,parts*H*K] -> `parts` views [B,H,T,K]."""
        batch, length, _ = x.shape
        return x.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def self_attention(self, x, weight, bias, mix_weight, mix_bias, causal):
        q, k, v = self.split_heads(F.linear(x, weight, bias), 3)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return F.linear(z.transpose(1, 2).reshape(x.shape), mix_weight, mix_bias)

    def cross_attention(self, x, memory, q_weight, q_bias, kv_weight, kv_bias, mix_weight, mix_bias):
        (q,) = self.split_heads(F.linear(x, q_weight, q_bias), 1)
        k, v = self.split_heads(F.linear(memory, kv_weight, kv_bias), 2)
        z = F.scaled_dot_product_attention(q, k, v)
        return F.linear(z.transpose(1, 2).reshape(x.shape), mix_weight, mix_bias)

    def feed_forward(self, x, weight, bias, outer_weight, outer_bias):
        return F.linear(F.relu_(F.linear(x, weight, bias)), outer_weight, outer_bias)

    def add(self, x, y):
        return x + (F.dropout(y, self.dropout, inplace=True) if self.dropout > 0 else y)

    def logits(self, source, target_in):
        """[B,T], [B,T] -> [B,T,V]."""
        embedded = F.embedding(torch.stack([source, target_in]), self.tokens) * math.sqrt(self.width) + self.positions
        if self.dropout > 0:
            embedded = F.dropout(embedded, self.dropout, inplace=True)
        x, y = embedded.unbind(0)
        for (self_norm, self_weights), (inner_norm, inner_weights) in self.layers["encoder"]:
            x = self.add(x, self.self_attention(self.norm(x, self_norm), *self_weights, causal=False))
            x = self.add(x, self.feed_forward(self.norm(x, inner_norm), *inner_weights))
        memory = self.norm(x, self.last_norm["encoder"])
        for layer in self.layers["decoder"]:
            (self_norm, self_weights), (cross_norm, cross_weights), (inner_norm, inner_weights) = layer
            y = self.add(y, self.self_attention(self.norm(y, self_norm), *self_weights, causal=True))
            y = self.add(y, self.cross_attention(self.norm(y, cross_norm), memory, *cross_weights))
            y = self.add(y, self.feed_forward(self.norm(y, inner_norm), *inner_weights))
        return F.linear(self.norm(y, self.last_norm["decoder"]), self.tokens)


def train(model, ids, steps):
    """Trains and returns (losses, seconds of the timed steps, their number)."""
    parameters = list(model.parameters.values())
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON,
                                  weight_decay=WEIGHT_DECAY, fused=True)
    sources, inputs, wanted = ids["source"], ids["target"][..., :-1].contiguous(), ids["target"][..., 1:].contiguous()
    warm_up = min((steps + 9) // 10, steps - 1)
    losses = []
    for step in range(steps):
        if step == warm_up:
            started = time.perf_counter()
        batch = step % len(sources)
        logits = model.logits(sources[batch], inputs[batch])
        loss = F.cross_entropy(logits.flatten(0, 1), wanted[batch].flatten(), ignore_index=PAD,
                               label_smoothing=LABEL_SMOOTHING)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM, foreach=True)
        optimizer.step()
        losses.append(loss.detach())
    seconds = time.perf_counter() - started
    return torch.stack(losses).tolist(), seconds, steps - warm_up


def parse():
    parser = argparse.ArgumentParser(description="trains an encoder-decoder in eager PyTorch and prints its speed")
    for name, default in (("width", 256), ("layers", 3), ("heads", 8), ("vocabulary", 8000), ("batch", 32),
                          ("length", 32), ("steps", 40), ("threads", 2), ("seed", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.1, help="on the embeddings and on each sublayer's output")
    parser.add_argument("--weights", type=pathlib.Path, help="safetensors: initial parameters; else drawn by the seed")
    parser.add_argument("--ids", type=pathlib.Path,
                        help="safetensors: source [N,B,T], target [N,B,T+1]; else drawn by the seed")
    parser.add_argument("--write-inputs", action="store_true", help="writes drawn --weights and --ids files and ends")
    args = parser.parse_args()
    if args.width % args.heads:
        parser.error(f"--width: expected a multiple of --heads ({args.heads}), got {args.width}")
    if args.steps < 1:
        parser.error(f"--steps: expected at least 1, got {args.steps}")
    if args.write_inputs and not (args.weights and args.ids):
        parser.error("--write-inputs: expected --weights FILE and --ids FILE to write")
    return args


def checked(tensors, wanted, path):
    for name, shape in wanted.items():
        got = tuple(tensors[name].shape) if name in tensors else "none"
        if got != tuple(shape):
            raise SystemExit(f"{path}: {name}: expected shape {tuple(shape)}, got {got}")
    return {name: tensors[name] for name in wanted}


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    if args.write_inputs:
        from safetensors.torch import save_file
        save_file(initial_weights(args), args.weights)
        save_file(random_ids(args), args.ids)
        return
    if args.weights or args.ids:
        from safetensors.torch import load_file
    shapes = parameter_shapes(args.width, args.layers, args.vocabulary)
    weights = checked(load_file(args.weights), shapes, args.weights) if args.weights else initial_weights(args)
    ids = load_file(args.ids) if args.ids else random_ids(args)
    batches = len(ids["source"]) if "source" in ids else 0
    shape = (batches, args.batch, args.length)
    ids = checked(ids, {"source": shape, "target": (*shape[:2], args.length + 1)}, args.ids)
    losses, seconds, timed_steps = train(Model(weights, args), ids, args.steps)
    print(json.dumps({
        "losses": losses,
        "tokens_per_s": timed_steps * args.batch * args.length / seconds,
        "seconds": seconds,
        "timed_steps": timed_steps,
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "cpu_capability": torch.backends.cpu.get_cpu_capability()},
    }))


if __name__ == "__main__":
    main()
