#!/usr/bin/env python3
"""Writes tests/golden/optimizers.json: weights after each of 10 steps of PyTorch's own optimisers, in double precision.

    python tools/golden/make_optimizer_goldens.py [--output tests/golden]

A matrix [2,3] and a vector [3] with the gradients of 10 steps, all from closed formulas, so that no generator matters.
"""

import argparse
import json
import math
import pathlib
import platform

import torch

STEPS, RATE = 10, 0.05
SHAPES = {"matrix": (2, 3), "vector": (3,)}
CASES = [
    ("adam", {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9}),
    ("adam", {"beta1": 0.8, "beta2": 0.999, "epsilon": 1e-3}),
    ("adamw", {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.3, "decay_vectors": True}),
    ("sgd", {"momentum": 0.0, "nesterov": False}),
    ("sgd", {"momentum": 0.9, "nesterov": False}),
    ("sgd", {"momentum": 0.7, "nesterov": True}),
]


def values(shape, phase):
    count = math.prod(shape)
    return torch.tensor([math.sin(1.7 * i + phase) for i in range(count)], dtype=torch.float64).reshape(shape)


def make(name, options, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=RATE, momentum=options["momentum"], nesterov=options["nesterov"])
    shared = {"lr": RATE, "betas": (options["beta1"], options["beta2"]), "eps": options["epsilon"]}
    if name == "adam":
        return torch.optim.Adam(parameters, **shared)
    return torch.optim.AdamW(parameters, weight_decay=options["weight_decay"], **shared)


def run(name, options):
    parameters = {key: torch.nn.Parameter(values(shape, 0.3 * len(key))) for key, shape in SHAPES.items()}
    optimizer = make(name, options, list(parameters.values()))
    start = {key: parameter.detach().flatten().tolist() for key, parameter in parameters.items()}
    steps = []
    for step in range(STEPS):
        gradients = {key: values(shape, 0.9 * step + len(key)) * (1 + step % 3) for key, shape in SHAPES.items()}
        for key, parameter in parameters.items():
            parameter.grad = gradients[key]
        optimizer.step()
        steps.append({"gradients": {key: gradient.flatten().tolist() for key, gradient in gradients.items()},
                      "weights": {key: parameter.detach().flatten().tolist() for key, parameter in parameters.items()}})
    return {"optimizer": name, "options": options, "start": start, "steps": steps}


def main():
    parser = argparse.ArgumentParser(description="writes goldens of optimisers")
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=pathlib.Path, default=root / "tests" / "golden")
    output = parser.parse_args().output
    about = {"made_by": "python tools/golden/make_optimizer_goldens.py",
             "versions": {"python": platform.python_version(), "torch": torch.__version__},
             "learning_rate": RATE, "shapes": SHAPES, "cases": [run(*case) for case in CASES]}
    text = json.dumps(about).replace('{"optimizer"', '\n{"optimizer"').replace('{"gradients"', '\n {"gradients"')
    (output / "optimizers.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
