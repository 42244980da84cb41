"""A study of many runs that were never trained: artifacts as the evaluation leaves them, written by `core.artifact`.

Values come from a named stream. Accuracies fall with the distance from the stage that trained the task; a method and an
order each shift them a little.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palimpsest.aggregate.costs import LARGEST, SUMS
from palimpsest.core import code
from palimpsest.core.artifact import Job
from palimpsest.core.streams import generator
from palimpsest.metrics import METRICS
from palimpsest.plan.grid import RULES_OF_THE_STUDY

METHODS = ("finetune", "ewc", "replay", "agem")
REFERENCES = ("random_init", "isolated", "joint")
PROTOCOLS = ("class_incremental", "task_incremental")
N_TOTAL = 500
FINDS_METRICS = ("metrics", "statistics", "report")


@dataclass(frozen=True)
class Size:
    """How large the study is.

    Args:
        seeds, orders: a full crossing; each method has seeds × orders runs, each reference one run per seed.
        tasks: T.
    """

    seeds: int
    orders: int
    tasks: int

    @property
    def task_names(self) -> list[str]:
        """The tasks in canonical order."""
        return [f"t{task + 1}" for task in range(self.tasks)]

    def units(self) -> dict[str, tuple[int, str, list[str]]]:
        """Seed, order id and tasks of each unit; those of the references come last."""
        tasks = self.task_names
        orders = {f"o{n}": list(generator("benchmark", "order", n).permutation(tasks)) for n in range(self.orders)}
        crossed = {f"s{seed}-{name}": (seed, name, orders[name]) for seed in range(self.seeds) for name in orders}
        return crossed | {f"s{seed}": (seed, "canonical", tasks) for seed in range(self.seeds)}

    def runs(self) -> list[tuple[str, str]]:
        """Method and unit of every run."""
        units = self.units()
        return [(m, unit) for m in METHODS for unit in units if "-" in unit] + [
            (m, unit) for m in REFERENCES for unit in units if "-" not in unit
        ]


def write_study(folder: Path, size: Size) -> None:
    """Write programs, plan, and of every run its matrix, outcome and stage records."""
    os.fsync = lambda descriptor: None  # a made-up study need not survive a crash of the machine
    for method in (*METHODS, *REFERENCES):
        for name in (method, f"evaluate/{method}"):
            _job(folder, "plan").write_json(f"plan/code/{name}.json", {"code": "c0de"}, "program")
    _write_plan(_job(folder, "plan"), size)
    units = size.units()
    for method, unit in size.runs():
        _write_run(folder, f"{method}/{unit}", method, units[unit][2], units[unit][1])


def write_programs(folder: Path) -> None:
    """Write the program of every rule as it is on disk now."""
    for rule in RULES_OF_THE_STUDY:
        modules = METRICS.modules() if rule in FINDS_METRICS else ()
        program = code.program(f"palimpsest.cli.stages.{rule}", modules)
        _job(folder, "plan").write_json(f"plan/code/rules/{rule}.json", program, "program")


def _job(folder: Path, rule: str) -> Job:
    return Job(folder, rule, code="c0de" * 16, environment="e0e0" * 16, spec_hash="5bec" * 16)


def _write_plan(job: Job, size: Size) -> None:
    rows = [
        (unit, seed, order, position, task)
        for unit, (seed, order, tasks) in size.units().items()
        for position, task in enumerate(tasks, start=1)
    ]
    names = ("unit", "seed", "order_id", "position", "task")
    job.write_table("plan/units.parquet", "units", dict(zip(names, zip(*rows, strict=True), strict=True)))
    runs = size.runs()
    columns = {
        "run": [f"{method}/{unit}" for method, unit in runs],
        "method": [method for method, _ in runs],
        "unit": [unit for _, unit in runs],
        "protocol": [PROTOCOLS[0]] * len(runs),
        "hyperparameters": ["{}"] * len(runs),
        "spec_hash": ["5bec" * 16] * len(runs),
    }
    job.write_table("plan/runs.parquet", "runs", columns)


def _write_run(folder: Path, run: str, method: str, order: list[str], order_id: str) -> None:
    stages = {"random_init": [0], "joint": [len(order)]}.get(method, list(range(1, len(order) + 1)))
    draw = generator("benchmark", "accuracy", run)
    better = METHODS.index(method) if method in METHODS else 3
    level = 0.2 + 0.15 * better + 0.002 * (sum(order_id.encode()) % 10)
    cells = list(_cells(draw, level, stages, order, method))
    names = ("protocol", "stage", "trained_task", "task", "n_correct")
    columns = dict(zip(names, zip(*cells, strict=True), strict=True))
    columns |= {"n_total": [N_TOTAL] * len(cells), "loss_sum": [100.5] * len(cells)}
    _job(folder, "evaluate").write_table(f"evaluation/{run}/matrix.parquet", "matrix", columns, flops=10**8)
    train = _job(folder, "train")
    counted = dict.fromkeys([*(name for names in SUMS.values() for name in names), *LARGEST], 0)
    counted |= {"flops_steps": 10**9, "flops_after_task": 10**6, "steps": 210, "parameters": 269322}
    counted |= {"method_bytes": 157000 if method == "replay" else 0}
    for stage in stages:
        train.write_json(f"runs/{run}/stage-{stage}.json", {"stage": stage, "counted": counted}, "stage")
    outcome = {"status": ["complete"], "stage": [stages[-1]], "step": [210], "reason": [None]}
    train.write_table(f"runs/{run}/outcome.parquet", "outcome", outcome)


def _cells(
    draw: np.random.Generator, level: float, stages: list[int], order: list[str], method: str
) -> Iterator[tuple[str, int, str, str, int]]:
    for protocol in PROTOCOLS:
        for stage in stages:
            noise = draw.normal(0, 0.02, len(order))
            for position, task in enumerate(order, start=1):
                learned = 0.95 if position == stage or method == "joint" else level if position < stage else 0.05
                correct = int(N_TOTAL * min(1.0, max(0.0, learned + noise[position - 1])))
                yield protocol, stage, order[max(stage - 1, 0)], task, correct
