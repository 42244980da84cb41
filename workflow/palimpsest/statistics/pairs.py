"""From the metrics of all runs to the pairs of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.errors import StudyError
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Metric
from palimpsest.metrics._evaluate import declaration
from palimpsest.statistics.plan import Comparison

# What a failed run is taken to have reached; the pair counts only in the last two.
SCENARIOS = ("complete", "worst for A", "best for A")


DECIMALS = 12


@dataclass(frozen=True)
class Pairs:
    """The values of two methods by unit.

    Args:
        metric: declaration of the compared metric.
        a, b: one value per unit, NaN where the run has none.
        failed_a, failed_b: whether the unit's run failed and so has no value.
        clusters: seed and order of each unit.
        finals: A − B of the final accuracy, by task and then unit.
        undefined: why runs that did not fail have no value, or null where each has one.
    """

    metric: Metric
    a: np.ndarray
    b: np.ndarray
    failed_a: np.ndarray
    failed_b: np.ndarray
    clusters: Mapping[str, Sequence[object]]
    finals: Mapping[str, np.ndarray]
    undefined: str | None

    def differences(self, scenario: str) -> tuple[np.ndarray, dict[str, list[object]]]:
        """A − B of the pairs that have both values in a scenario, and the clusters of these pairs.

        In `worst for A` a failed run of A counts as the worst value that the metric can reach and one of B as the
        best; in `best for A` the other way round. A run that did not fail and has no value (its reference run failed,
        or the metric is undefined for it) says nothing of the method: its pair is left out everywhere.
        """
        low, high = self.metric.range
        worst, best = (low, high) if self.metric.direction == "higher" else (high, low)
        fill = {"complete": (np.nan, np.nan), "worst for A": (worst, best), "best for A": (best, worst)}[scenario]
        runs = ((self.a, self.failed_a), (self.b, self.failed_b))
        a, b = (np.where(failed, end, values) for (values, failed), end in zip(runs, fill, strict=True))
        paired = ~np.isnan(a - b)
        kept = {factor: [levels[at] for at in np.flatnonzero(paired)] for factor, levels in self.clusters.items()}
        # Metrics are ratios of counts: what is left below this is rounding, and would make a sign out of a tie.
        return np.round((a - b)[paired], DECIMALS), kept


def find_pairs(
    comparison: Comparison, metrics: pa.Table, units: Mapping[str, Mapping[str, Any]], failed: Collection[str]
) -> Pairs:
    """The pairs of a comparison: all units of both methods, or none where the methods share no unit.

    Args:
        comparison: what is compared.
        metrics: rows of `aggregate/metrics.parquet`.
        units: seed and order of each unit.
        failed: runs that failed, `METHOD/UNIT`.

    Raises:
        StudyError: a method, a metric or its index does not exist.
    """
    metric = _require_metric(comparison)
    rows = {method: _rows_of(metrics, method, comparison) for method in (comparison.a, comparison.b)}
    of_a, of_b = (set(pc.unique(table["run_unit"]).to_pylist()) for table in rows.values())
    # A unit that one of the methods lacks is a run that left nothing behind: it counts as failed.
    shared = sorted(of_a | of_b) if of_a & of_b else []
    a, b = (_values(table, comparison.metric, comparison.index, shared) for table in rows.values())
    failed_a, failed_b = (
        np.isnan(values) & np.array([unit not in left or f"{method}/{unit}" in failed for unit in shared], dtype=bool)
        for method, values, left in ((comparison.a, a, of_a), (comparison.b, b, of_b))
    )
    tasks = sorted({task for table in rows.values() for task in _tasks(table)})
    final_a, final_b = (
        {task: _values(table, "final_accuracy", None, shared, task) for task in tasks} for table in rows.values()
    )
    clusters = {factor: [units[unit][column] for unit in shared] for factor, column in _FACTORS.items()}
    finals = {task: final_a[task] - final_b[task] for task in tasks} if shared else {}
    reasons = {reason for method in rows for reason in _why_undefined(rows[method], method, comparison, shared, failed)}
    return Pairs(metric, a, b, failed_a, failed_b, clusters, finals, "; ".join(sorted(reasons)) or None)


_FACTORS = {"seed": "seed", "order": "order_id"}


def _require_metric(comparison: Comparison) -> Metric:
    METRICS.require(comparison.metric, f"comparison {comparison.name}")
    metric = declaration(comparison.metric)
    if metric.index == "task" or (metric.index is None) != (comparison.index is None):
        number = "a number of mini-batches as its index"
        of_stage, of_task = "the stage k as its index", "a metric with one value per run"
        expected = {None: "no index", "k": of_stage, "b": number, "beta": number, "task": of_task}
        raise StudyError(
            f"the metric {comparison.metric} cannot be compared like this",
            where=f"comparison {comparison.name}",
            expected=expected[metric.index],
            got=f"index {comparison.index}",
            next="correct the study file and lock it again",
        )
    return metric


def _rows_of(metrics: pa.Table, method: str, comparison: Comparison) -> pa.Table:
    """Rows of a method under the comparison's protocol, with the column `run_unit`."""
    of_method = metrics.filter(pc.starts_with(metrics["run"], f"{method}/"))
    rows = of_method.filter(pc.equal(of_method["protocol"], comparison.protocol))
    if not len(rows):
        raise StudyError(
            "a comparison names a method that has no metrics",
            where=f"comparison {comparison.name}",
            expected=f"runs of {method} under the protocol {comparison.protocol} in aggregate/metrics.parquet",
            got="none",
            next="correct the study file and lock it again",
        )
    return rows.append_column("run_unit", pc.utf8_slice_codeunits(rows["run"], len(method) + 1))


def _why_undefined(
    table: pa.Table, method: str, comparison: Comparison, units: Sequence[str], failed: Collection[str]
) -> Iterator[str]:
    """What is missing for the null values of runs that did not fail."""
    for row in _select(table, comparison.metric, comparison.index, None).to_pylist():
        if row["value"] is None and row["run_unit"] in units and f"{method}/{row['run_unit']}" not in failed:
            yield row["missing"] or "no reason is known"


def _select(table: pa.Table, metric: str, index: int | None, task: str | None) -> pa.Table:
    wanted = pc.equal(table["metric"], metric)
    for column, value in (("index", index), ("task", task)):
        same = pc.is_null(table[column]) if value is None else pc.fill_null(pc.equal(table[column], value), False)
        wanted = pc.and_(wanted, same)
    return table.filter(wanted)


def _values(
    table: pa.Table, metric: str, index: int | None, units: Sequence[str], task: str | None = None
) -> np.ndarray:
    rows = _select(table, metric, index, task)
    found = dict(zip(rows["run_unit"].to_pylist(), rows["value"].to_pylist(), strict=True))
    return np.array([found.get(unit) for unit in units], dtype=float)


def _tasks(table: pa.Table) -> list[str]:
    return pc.unique(table.filter(pc.equal(table["metric"], "final_accuracy"))["task"]).to_pylist()
