"""Reads the metrics of all runs and writes the outcome of the announced comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palimpsest.core.artifact import Job
from palimpsest.core.tables import TABLES
from palimpsest.statistics.compare import compare
from palimpsest.statistics.pairs import find_pairs
from palimpsest.statistics.plan import read_analysis


def write_comparisons(job: Job, analysis: Mapping[str, Any]) -> None:
    """Write `statistics/comparisons.parquet`.

    Args:
        job: the open job; the units and the aggregated metrics become its parents.
        analysis: the analysis plan, as the lock holds it.

    Raises:
        StudyError: the plan cannot be carried out on these runs.
        ArtifactError: a table is missing or not the one that was written.
    """
    plan = read_analysis(analysis)
    units = {row["unit"]: row for row in job.read_table("plan/units.parquet", "units").to_pylist()}
    metrics = job.read_table("aggregate/metrics.parquet", "metrics")
    rows = compare(plan, [find_pairs(comparison, metrics, units) for comparison in plan.comparisons])
    columns = {name: [row[name] for row in rows] for name in TABLES["comparisons"].schema.names}
    job.write_table("statistics/comparisons.parquet", "comparisons", columns)
