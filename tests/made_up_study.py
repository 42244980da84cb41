"""Small studies written by hand, up to the evaluation, for tests of the stages that follow it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palimpsest.aggregate.costs import LARGEST, SUMS
from palimpsest.cli.main import STAGES
from palimpsest.core import code
from palimpsest.core.artifact import Job
from palimpsest.metrics import METRICS

PROTOCOL = "class_incremental"
N_TOTAL = 100
SPEC = "5bec"
METHODS = ("replay", "finetune", "ewc", "random_init", "isolated", "joint")
# Stages that find modules by name run these too.
MODULES = {"metrics": METRICS.modules(), "statistics": METRICS.modules()}


@dataclass(frozen=True)
class MadeUpStudy:
    """A study in a folder, whose runs are given as matrices of percent."""

    folder: Path

    def __post_init__(self) -> None:
        for stage in ("metrics", "ledger", "aggregate", "statistics", "audit"):
            recorded = code.program(f"palimpsest.cli.stages.{stage}", MODULES.get(stage, ()))
            self.job("plan").write_json(f"plan/code/rules/{stage}.json", recorded, "code")

    def job(self, rule: str) -> Job:
        return Job(self.folder, rule, code="c0de", environment="e0e0", spec_hash=SPEC)

    def plan(self, orders: Mapping[str, Sequence[str]]) -> None:
        """Write the units and runs; a unit is named s0-o1, or s0 for runs that the orders of a seed share."""
        names = ("run", "method", "unit", "protocol", "hyperparameters", "spec_hash")
        runs = [(f"{m}/{unit}", m, unit, PROTOCOL, "{}", SPEC) for m in METHODS for unit in orders]
        self.job("plan").write_table(
            "plan/runs.parquet", "runs", _columns([dict(zip(names, r, strict=True)) for r in runs])
        )
        rows = [
            {
                "unit": unit,
                "seed": int(unit.split("-")[0][1:]),
                "order_id": unit.split("-")[1] if "-" in unit else "canonical",
                "position": position,
                "task": task,
            }
            for unit, tasks in orders.items()
            for position, task in enumerate(tasks, start=1)
        ]
        self.job("plan").write_table("plan/units.parquet", "units", _columns(rows))

    def run(
        self,
        run: str,
        order: Sequence[str],
        percent: Sequence[Sequence[int | None]],
        first_stage: int = 1,
        outcome: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the matrix of a run (rows: stages, columns: positions, None: not measured), its outcome and program."""
        method = run.split("/")[0]
        cells = [
            (first_stage + row, order[column], value)
            for row, values in enumerate(percent)
            for column, value in enumerate(values)
            if value is not None
        ]
        self.matrix(run, [(stage, order[max(stage - 1, 0)], task, value) for stage, task, value in cells])
        status = {"status": "complete", "stage": len(percent), "step": 10, "reason": None, **(outcome or {})}
        train = self.job("train")
        for program in (method, f"evaluate/{method}"):
            train.write_json(f"plan/code/{program}.json", {"code": "c0de"}, "code")
        for stage in range(first_stage, first_stage + len(percent)):
            record = {"stage": stage, "counted": counted(stage), "machine": {"threads": 1}}
            train.write_json(f"runs/{run}/stage-{stage}.json", record, "stage")
        train.write_table(f"runs/{run}/outcome.parquet", "outcome", {name: [value] for name, value in status.items()})

    def matrix(self, run: str, cells: Sequence[tuple[int, str, str, int]], *n_total: int) -> None:
        """Write a matrix from cells (stage, trained task, task, n_correct), and n_total of each, or of all, or 100."""
        names = ("stage", "trained_task", "task", "n_correct")
        columns = {
            "protocol": [PROTOCOL] * len(cells),
            "n_total": n_total if len(n_total) > 1 else list(n_total or [N_TOTAL]) * len(cells),
            "loss_sum": [1.0] * len(cells),
            **{name: [cell[at] for cell in cells] for at, name in enumerate(names)},
        }
        self.job("evaluate").write_table(f"evaluation/{run}/matrix.parquet", "matrix", columns, flops=50)

    def stage(self, name: str, **options: Any) -> None:
        """Run a stage as its rule does; options that are not texts are passed as JSON."""
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}
        STAGES.load(name, "test").command(study=self.folder, code=f"plan/code/rules/{name}.json", **texts)

    def metrics(
        self,
        run: str,
        schedule: str = "sequential",
        references: Mapping[str, str] | None = None,
        protocols: Sequence[str] = (),
    ) -> None:
        """Run the stage `metrics` on one run, with its reference runs by what they are."""
        of_run = {run: dict(references)} if references else {}
        self.stage("metrics", schedule=schedule, runs=[run], references=of_run, protocols=list(protocols))

    def rows(self, path: str, name: str, **where: Any) -> list[dict[str, Any]]:
        """Rows of a table whose columns have the given values."""
        rows = self.job("look").read_table(path, name).to_pylist()
        return [row for row in rows if all(row[column] == value for column, value in where.items())]


def counted(stage: int) -> dict[str, int]:
    """What a stage counts: another number at each stage, and a state that grows."""
    own = {"flops_steps": 1000 * stage, "flops_after_task": stage, "steps": 10 * stage, "flops_probing": stage}
    left = {"parameters": 7, "method_bytes": 100 * stage, "copies_bytes": 100 * stage}
    return {**dict.fromkeys(COUNTS, 0), **own, **left}


COUNTS = {*(name for names in SUMS.values() for name in names), *LARGEST}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
