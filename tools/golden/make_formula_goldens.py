#!/usr/bin/env python3
"""Writes tests/golden/formulas.json: values of closed formulas, by Python's own floats (double precision).

    python tools/golden/make_formula_goldens.py [--output tests/golden]

hard_concrete (arXiv 1712.01312; gates of heads: 1905.09418), temperature t, stretch (l, r):
    sample(u) = clip(sigmoid((log u - log(1 - u) + log_alpha) / t) (r - l) + l, 0, 1)
    eval      = clip(sigmoid(log_alpha) (r - l) + l, 0, 1)
    open      = P(gate > 0) = sigmoid(log_alpha - t log(-l / r))
    one       = P(gate = 1) = sigmoid(log_alpha - t log((1 - l) / (r - 1)))
schedule (arXiv 1706.03762, 5.3), steps from 1: width^-0.5 min(step^-0.5, step warmup^-1.5)
beam (arXiv 1609.08144, 7): a table of log p(next | last token), in which every hypothesis can be listed;
    score = log p / ((5 + length) / 6)^alpha, where length counts the tokens after bos, eos included;
    `best` lists all finished hypotheses of at most max_length tokens by falling score
"""

import argparse
import itertools
import json
import math
import pathlib
import platform


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def clip(x):
    return min(max(x, 0.0), 1.0)


def hard_concrete():
    temperature, low, high = 0.33, -0.1, 1.1
    rows = []
    for log_alpha in (-3.0, -2.0, 0.0, 0.3, 2.0, 3.0):
        sample = lambda u: clip(sigmoid((math.log(u / (1 - u)) + log_alpha) / temperature) * (high - low) + low)
        samples = [{"u": u, "gate": sample(u)} for u in (0.02, 0.25, 0.4, 0.5, 0.65, 0.9, 0.98)]
        rows.append({"log_alpha": log_alpha, "samples": samples, "eval": clip(sigmoid(log_alpha) * (high - low) + low),
                     "open": sigmoid(log_alpha - temperature * math.log(-low / high)),
                     "one": sigmoid(log_alpha - temperature * math.log((1 - low) / (high - 1)))})
    return {"temperature": temperature, "stretch": [low, high], "rows": rows}


def schedule():
    rows = []
    for width, warmup in ((512, 4000), (256, 400), (64, 1)):
        for step in sorted({1, warmup, 4 * warmup}):
            rows.append({"width": width, "warmup": warmup, "step": step,
                         "rate": width**-0.5 * min(step**-0.5, step * warmup**-1.5)})
    return rows


def beam():
    tokens = ["bos", "eos", "a", "b"]
    bos, eos, words, max_length = 0, 1, (2, 3), 4
    table = {bos: [0.0, 0.40, 0.35, 0.25], 2: [0.0, 0.15, 0.10, 0.75], 3: [0.0, 0.80, 0.15, 0.05]}  # p(next | last)
    hypotheses = []
    for count in range(max_length):
        for inner in itertools.product(words, repeat=count):
            path = [bos, *inner, eos]
            hypotheses.append((list(path[1:]), sum(math.log(table[a][b]) for a, b in zip(path, path[1:]))))
    best = []
    for alpha in (0.0, 0.6, 1.0, 2.0):
        scored = [{"tokens": ids, "log_p": log_p, "score": log_p / ((5 + len(ids)) / 6) ** alpha}
                  for ids, log_p in hypotheses]
        best.append({"alpha": alpha, "hypotheses": sorted(scored, key=lambda h: -h["score"])})
    return {"tokens": tokens, "bos": bos, "eos": eos, "max_length": max_length,
            "probability": [{"last": last, "next": row} for last, row in table.items()], "best": best}


def main():
    parser = argparse.ArgumentParser(description="writes goldens of closed formulas")
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=pathlib.Path, default=root / "tests" / "golden")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    about = {"made_by": "python tools/golden/make_formula_goldens.py",
             "versions": {"python": platform.python_version()},
             "hard_concrete": hard_concrete(), "schedule": schedule(), "beam": beam()}
    (output / "formulas.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
