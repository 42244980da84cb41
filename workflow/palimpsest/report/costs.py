"""The page of costs: clock, memory and what was interrupted. From telemetry: two runs of a plan may differ in it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from palimpsest.core.artifact import read_plain_table
from palimpsest.core.numbers import count, duration, percent
from palimpsest.report.study import Row

ENDS = ("finished", "stopped", "failed", "killed")
"""How an attempt ends: as meant; asked to stop, as by a batch system; with an error; without a word."""
MOST = 200
"""Attempts that are listed one by one."""


def read_telemetry(folder: Path, runs: Iterable[str]) -> list[Row]:
    """Rows of the table `telemetry` of some runs; one that has none was given up before it was ever tried."""
    paths = [folder / "telemetry" / f"{run}.parquet" for run in runs]
    return [row for path in paths if path.is_file() for row in read_plain_table(path, "telemetry").to_pylist()]


def costs(methods: Sequence[str], attempts: Sequence[Row]) -> dict[str, Any]:
    """Content of the page.

    Args:
        methods: labels of all methods and references, in the order of the plan.
        attempts: rows of the table `telemetry`, of all runs.
    """
    rows = {name: [row for row in attempts if row["run"].rsplit("/", 1)[0] == name] for name in methods}
    broken_off = [row for row in attempts if _end(row) != "finished"]
    return {
        "methods": [_summary(name, of_method) for name, of_method in rows.items()],
        "total": duration(sum(row["wall_clock_s"] or 0 for row in attempts)),
        "hosts": [_host(host, attempts) for host in sorted({row["host"] for row in attempts})],
        "broken_off": broken_off[:MOST],
        "not_listed": max(len(broken_off) - MOST, 0),
    }


def _end(row: Row) -> str:
    return row["outcome"].split(":")[0]


def _summary(method: str, rows: Sequence[Row]) -> Row:
    ends = [_end(row) for row in rows]
    seconds = [row["wall_clock_s"] for row in rows if row["wall_clock_s"] is not None]
    runs: dict[str, float] = {}
    for row in rows:
        runs[row["run"]] = runs.get(row["run"], 0.0) + (row["wall_clock_s"] or 0.0)
    peak = max((row["peak_memory_bytes"] for row in rows if row["peak_memory_bytes"] is not None), default=None)
    return {
        "method": method,
        "n_runs": len(runs),
        "total": duration(sum(seconds)),
        "of_run": duration(statistics.median(runs.values()) if runs else None),
        "recording": percent(sum(row["probing_s"] or 0 for row in rows) / sum(seconds) if sum(seconds) else None),
        "peak": count(None if peak is None else round(peak / 2**20)),
        "n_resumed": sum(row["resumed_at"] is not None for row in rows),
        **{f"n_{end}": ends.count(end) for end in ENDS},
    }


def _host(host: str, attempts: Sequence[Row]) -> Row:
    own = [row for row in attempts if row["host"] == host]
    return {"host": host, "n": len(own), "total": duration(sum(row["wall_clock_s"] or 0 for row in own))}
