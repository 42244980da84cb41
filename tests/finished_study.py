"""A small study that is really trained, evaluated and analysed: all stages of the workflow, without Snakemake."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import small_study
from palimpsest.cli.analysing import measure, stage
from palimpsest.cli.begin import begin
from palimpsest.cli.history import History
from palimpsest.cli.runs import each_run, modules_of
from palimpsest.core.attempts import Notes
from palimpsest.core.hashing import canonical_json
from palimpsest.plan.grid import Grid
from palimpsest.plan.marks import no_marks
from palimpsest.training.machine import kind_of_machine


def references(content: dict[str, Any]) -> None:
    """The change of the small study: every kind of reference, a second comparison, probes and the stream."""
    content.update(probes={"first_batches": 1, "every": 2, "tasks": "all", "samples": 3}, prequential=True)
    content["references"] = {"random_init": True, "isolated": True, "joint": "final"}
    usual = {"a": "replay", "b": "finetune"}
    content["analysis"]["secondary"] = [{"name": "f", **usual, "metric": "forgetting"}]


def finish(folder: Path, change: small_study.Change = references) -> Path:
    """Make the study below a folder, after a change of the small one; returns its results."""
    plan = small_study.plan_of(folder, change)
    lock = folder / "small.lock.json"
    lock.write_bytes(json.dumps(plan, indent=1).encode())
    study, grid = folder / "results" / "small", Grid(plan)
    History(folder / "small.yaml", study, plan, grid.programs()).note(
        f"evaluation/{run}/predictions.parquet" for run in grid.runs
    )
    for name, program in grid.programs().items():
        stage(study, "plan_code", f"plan/code/{name}.json", program=program)
    stage(study, "plan", lock=lock)
    stage(study, "data", benchmark=grid.benchmark)
    stage(study, "manifest")
    for method in grid.methods:
        train(study, grid, method)
        shared, units = told(grid, method)
        stage(study, "evaluate", f"plan/code/evaluate/{method}.json", method=method, shared=shared, units=units)
    analyse(study, grid)
    return study


def analyse(study: Path, grid: Grid, report: bool = True) -> None:
    """From the matrices to the report, or to the root."""
    for method in grid.methods:
        measure(study, grid, method)
    conclude(study, grid, report)


def replan(study: Path) -> None:
    """The plan's tables, and what follows from plan and matrices."""
    lock = study / "plan/lock.json"
    stage(study, "plan", lock=lock)
    analyse(study, Grid(json.loads(lock.read_bytes())))


def conclude(study: Path, grid: Grid, report: bool = True) -> None:
    """From the metrics to the report, or to the root."""
    for method in grid.methods:
        stage(study, "ledger", method=method)
    stage(study, "aggregate", methods=grid.methods)
    stage(study, "statistics", analysis=grid.analysis, marks=no_marks())
    stage(study, "audit", methods=grid.methods)
    if report:
        stage(study, "report")


def train(study: Path, grid: Grid, method: str) -> None:
    """Train all runs of a method, without the signals of the command, and collect what their stages recorded."""
    from palimpsest.training.stages import train_stages

    shared, units = told(grid, method)
    job = begin(study, "train", f"plan/code/{method}.json", modules_of(shared))
    for run_job, run, spec in each_run(job, method, shared, units):
        numbers = [stage["stage"] for stage in spec["stages"]]
        recording = grid.recording(method)
        train_stages(
            run_job, run, spec, numbers, recording, kind_of_machine(1), _unobserved, lambda: "go", lambda line: None
        )
    stage(study, "collect", method=method, shared=shared, units=units, recording=json.dumps(grid.recording(method)))


def told(grid: Grid, method: str) -> tuple[str, str]:
    """What the jobs of a method are told: what its runs share, and the units."""
    units = {unit["unit"]: unit for unit in grid.plan["units"]}
    return grid.shared(method), canonical_json([units[unit] for unit in grid.units(method)]).decode()


def _unobserved(stage: int) -> Any:
    return nullcontext(Notes())
