"""The plan as tables."""

from __future__ import annotations

from pathlib import Path

from palimpsest.core.artifact import Job
from palimpsest.core.hashing import canonical_json
from palimpsest.plan.grid import Grid
from palimpsest.plan.lock import read_lock


def write_plan(job: Job, lock: Path) -> None:
    """Write `plan/lock.json` (a copy of the lock), `plan/units.parquet` and `plan/runs.parquet`."""
    plan = read_lock(lock)
    job.write_bytes("plan/lock.json", lock.read_bytes(), kind="lock")
    rows = [
        (unit["unit"], unit["seed"], unit["order_id"], position, task)
        for unit in plan["units"]
        for position, task in enumerate(unit["tasks"], start=1)
    ]
    columns = ("unit", "seed", "order_id", "position", "task")
    job.write_table("plan/units.parquet", "units", dict(zip(columns, zip(*rows, strict=True), strict=True)))
    runs = list(Grid(plan).runs.values())
    job.write_table(
        "plan/runs.parquet",
        "runs",
        {
            "run": [run.run for run in runs],
            "method": [run.method for run in runs],
            "unit": [run.unit for run in runs],
            "protocol": [run.spec["protocol"] for run in runs],
            "hyperparameters": [canonical_json(run.spec["hyperparameters"]).decode() for run in runs],
            "spec_hash": [run.spec_hash for run in runs],
        },
    )
