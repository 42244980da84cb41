"""How far a study is: the state of every run, read from what lies in its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palimpsest.core.attempts import read_attempts
from palimpsest.core.exclusive import is_held
from palimpsest.plan.grid import Grid, Run

STATES = ("done", "ended", "running", "failed", "trained", "waiting")
"""done: up to its metrics; ended: its trajectory ended as a recorded outcome; running: a process trains it now;
failed: its last attempt broke off; trained: its stages are there, its metrics not yet; waiting: all else."""


@dataclass(frozen=True)
class Cell:
    """State of one run.

    Args:
        run: `METHOD/UNIT`.
        state: one of `STATES`.
        stages_done, stages: stages with a record, and all.
        reason: why it ended or failed.
        seconds: training time of the finished attempts.
        stages_timed: stages whose training time is known.
    """

    run: str
    state: str
    stages_done: int
    stages: int
    reason: str | None
    seconds: float
    stages_timed: int


def cells(folder: Path, grid: Grid) -> list[Cell]:
    """The state of every run of a study, in the order of the plan."""
    return [_cell(folder, run) for run in grid.runs.values()]


def seconds_left(found: list[Cell]) -> float | None:
    """Training time of the stages that are still missing, one after the other; null before the first has ended.

    Stages are taken to last as long as those of the same method on average, or of all methods where it has none yet.
    """
    timed = sum(cell.stages_timed for cell in found)
    if timed == 0:
        return None
    everywhere = sum(cell.seconds for cell in found) / timed
    left = 0.0
    for method in {cell.run.split("/")[0] for cell in found}:
        own = [cell for cell in found if cell.run.split("/")[0] == method]
        own_timed = sum(cell.stages_timed for cell in own)
        mean = sum(cell.seconds for cell in own) / own_timed if own_timed else everywhere
        left += mean * sum(cell.stages - cell.stages_done for cell in own)
    return left


def _cell(folder: Path, run: Run) -> Cell:
    records = [_read(folder / "runs" / run.run / f"stage-{number}.json") for number in run.stage_numbers]
    there = [record for record in records if record is not None]
    ended = next((record for record in there if record["status"] == "ended"), None)
    attempts = read_attempts(folder, run.run)
    finished = {a["stage"]: a["wall_clock_s"] for a in attempts if a["outcome"] == "finished"}
    failure = _failure(attempts)
    if is_held(folder / "runs" / run.run / ".lock"):
        state, reason = "running", None
    elif ended is not None:
        state, reason = "ended", f"stage {ended['ended_in']}: {ended['reason']}"
    elif len(there) == len(records):
        state, reason = ("done" if (folder / "metrics" / f"{run.run}.parquet").is_file() else "trained"), None
    else:
        state, reason = ("failed", failure) if failure else ("waiting", None)
    return Cell(run.run, state, len(there), len(records), reason, sum(finished.values()), len(finished))


def _failure(attempts: list[dict[str, Any]]) -> str | None:
    """How the last attempt broke off, and which it was of its stage; null where it finished or there is none."""
    if not attempts or attempts[-1]["outcome"] == "finished":
        return None
    last = attempts[-1]
    n_attempts = sum(attempt["stage"] == last["stage"] for attempt in attempts)
    return f"stage {last['stage']}: {last['outcome']}, attempts: {n_attempts}"


def _read(path: Path) -> dict[str, Any] | None:
    """A stage's record; null where there is none, or only the torn one of a killed process."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
