"""Reads the metrics of all runs and writes the statistics of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.artifact import Job
from palimpsest.core.tables import TABLES
from palimpsest.statistics.compare import compare
from palimpsest.statistics.orders import FinalAccuracy, order_rows
from palimpsest.statistics.pairs import find_pairs
from palimpsest.statistics.plan import read_analysis


def write_statistics(job: Job, analysis: Mapping[str, Any]) -> None:
    """Write `statistics/comparisons.parquet` and `statistics/orders.parquet`.

    Args:
        job: the open job; the units and the aggregated metrics become its parents.
        analysis: the analysis plan, as the lock holds it.

    Raises:
        StudyError: the plan cannot be carried out on these runs.
        ArtifactError: a table is missing or not the one that was written.
    """
    plan = read_analysis(analysis)
    units = job.read_table("plan/units.parquet", "units").to_pylist()
    metrics = job.read_table("aggregate/metrics.parquet", "metrics")
    by_name = {row["unit"]: row for row in units}
    pairs = [find_pairs(comparison, metrics, by_name) for comparison in plan.comparisons]
    _write(job, "comparisons", compare(plan, pairs))
    _write(job, "orders", order_rows(_final_accuracies(metrics, units)))


def _final_accuracies(metrics: pa.Table, units: Sequence[Mapping[str, Any]]) -> list[FinalAccuracy]:
    position = {(row["unit"], row["task"]): row for row in units}
    rows = metrics.filter(pc.equal(metrics["metric"], "final_accuracy")).to_pylist()
    finals = []
    for row in rows:
        method, unit = row["run"].split("/")
        at = position[unit, row["task"]]
        placed = {"seed": at["seed"], "order": at["order_id"], "position": at["position"]}
        finals.append(FinalAccuracy(method, row["protocol"], row["task"], value=row["value"], **placed))
    return finals


def _write(job: Job, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = {column: [row[column] for row in rows] for column in TABLES[name].schema.names}
    job.write_table(f"statistics/{name}.parquet", name, columns)
