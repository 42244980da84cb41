"""Time of a step of each method, relative to plain training in the same process, beside the ratio of counted FLOPs.

Every method trains two tasks of random images with the examples of its file; steps of the second task are timed, when
there is something to remember. The runs of all methods take turns, so that other work on the machine weighs on all
alike; time is that of the processor, not of the clock.

    PYTHONPATH=tests python tests/benchmarks/methods.py --model mlp --batch-size 10
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import tiny
from palimpsest.methods import METHODS
from palimpsest.plan.grid import REFERENCES

TASKS = {"t1": [0, 1, 2, 3, 4], "t2": [5, 6, 7, 8, 9]}
MODELS = {
    "mlp": ({"hidden": [256, 256]}, (28, 28)),
    "convnet": ({"channels": [16, 32], "hidden": [128]}, (28, 28)),
    "resnet18_reduced": ({"width": 20}, (32, 32, 3)),
}


def specification(name: str, model: str, batch_size: int, head: str) -> dict:
    """A run of a method on the two tasks, under the mask `current` where it needs heads."""
    module = METHODS.load(name, "")
    alone = module.DECLARATION.needs_task_identity or head == "multi"
    options, _ = MODELS[model]
    mask, protocol = ("current", "task_incremental") if alone else ("all", "class_incremental")
    told = tiny.spec_of(
        name,
        tiny.example(module.Hyperparameters),
        order=("t1", "t2"),
        stage_schedule=module.DECLARATION.schedule,
        mask=mask,
        protocol=protocol,
        head="multi" if alone else "shared",
        batch_size=batch_size,
        epochs=1,
        learning_rate=0.01,
    )
    return {**told, "model": {**told["model"], "name": model, "options": options}}


def steps(study: Path, spec: dict, run: str) -> tuple[list[float], list[int]]:
    """Seconds between the ends of two steps, and FLOPs of each step, in the second task."""
    tiny.train(study, spec, run, [1])
    ends: list[float] = []

    def ask() -> str:
        ends.append(time.process_time())
        return "go"

    tiny.train(study, spec, run, [2], ask=ask)
    return np.diff(ends).tolist(), [row["flops"] for row in tiny.step_rows(study, 2, run)]


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), default="mlp")
    parser.add_argument("--head", choices=["shared", "multi"], default="shared")
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", nargs="*")
    told = parser.parse_args()
    tiny.TASKS, tiny.SHAPE, tiny.N_OUTPUTS = TASKS, MODELS[told.model][1], 10
    tiny.FACTS.update(shape=list(tiny.SHAPE), n_outputs=10, sample_bytes=int(np.prod(tiny.SHAPE)))
    names = told.methods or [name for name in METHODS.names() if name not in REFERENCES and name != "finetune"]
    seconds: dict[str, list[float]] = {name: [] for name in ["finetune", *names]}
    flops: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        study = tiny.new_study(Path(folder), {t: told.steps * told.batch_size // 5 for t in TASKS}, n_test=1)
        for number in range(told.rounds):
            for name in seconds:
                spec = specification(name, told.model, told.batch_size, told.head)
                taken, counted = steps(study, spec, f"{name}/s{number}-o0")
                seconds[name] += taken
                flops[name] = median(counted)
    base_s, base_flops = median(seconds["finetune"]), flops["finetune"]
    print(json.dumps({"model": told.model, "batch_size": told.batch_size, "head": told.head, "ms": base_s * 1e3}))
    print("| method | time | FLOPs | time / FLOPs |\n| --- | ---: | ---: | ---: |")
    for name in names:
        times, counts = median(seconds[name]) / base_s, flops[name] / base_flops
        print(f"| `{name}` | {times:.2f} | {counts:.2f} | {times / counts:.2f} |")


if __name__ == "__main__":
    main()
