"""What the report reads: the locked plan and the tables that the analysis made of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.artifact import Job
from palimpsest.core.numbers import is_missing
from palimpsest.report.history import read_history
from palimpsest.report.manifest import read_manifest

Row = dict[str, Any]
# Number of a row in its table, from 0: beside its columns.
ROW = "row_number"
# The columns of the table `costs` that the page prints, each with heading and unit, in its order.
COSTS = {
    "flops_mean": ("training", "FLOPs per run"),
    "flops_replayed_mean": ("of it replay", "FLOPs per run"),
    "flops_method_mean": ("method's own", "FLOPs per run"),
    "flops_evaluation_mean": ("evaluation", "FLOPs per run"),
    "steps_mean": ("training", "steps per run"),
    "parameters": ("model", "parameters"),
    "parameters_added": ("of them added", "parameters"),
    "memory_bytes_max": ("stored", "bytes"),
    "copies_bytes_max": ("copies of weights", "bytes"),
}


@dataclass(frozen=True)
class Study:
    """Everything that the report shows, as it was read.

    Args:
        lock: the locked plan.
        summary: rows of `aggregate/summary.parquet`.
        matrix: rows of `aggregate/matrix.parquet`.
        costs: rows of `aggregate/costs.parquet`, in the order of the plan.
        curves: rows of `aggregate/curves.parquet`.
        comparisons: rows of `statistics/comparisons.parquet`, in the order of the plan.
        failures: rows of `aggregate/failures.parquet`.
        orders: rows of `statistics/orders.parquet`.
        decisions: rows of `statistics/decisions.parquet`.
        reasons: (method, protocol, metric) → why the metric is null, of the runs where it is.
        root: content of `audit/root.json`.
        data: footer of `data/samples.parquet`.
        manifest: the data beside that: samples per class, duplicates, test samples by tier (`report.manifest`).
        history: when the plan was locked, amended and first used (`report.history`).
    """

    lock: Row
    summary: list[Row]
    matrix: list[Row]
    costs: list[Row]
    curves: list[Row]
    comparisons: list[Row]
    failures: list[Row]
    orders: list[Row]
    decisions: list[Row]
    reasons: dict[tuple[str, str, str], tuple[str, ...]]
    root: Row
    data: Row
    manifest: Row
    history: Row

    @property
    def plan(self) -> Row:
        """The study as it was written, with every default spelled out."""
        return self.lock["study"]

    @property
    def protocol(self) -> str:
        """The protocol under which the study runs."""
        return self.plan["protocol"]

    @property
    def n_tasks(self) -> int:
        """Number of stages that a run goes through."""
        return max((len(tasks) for tasks in self.lock["orders"].values()), default=0)

    def names(self, role: str) -> list[str]:
        """Names of what was run in a role ("method" or "reference"), in the order of the plan."""
        return [name for name, about in self.lock["methods"].items() if about["role"] == role]

    def scalar(self, method: str, protocol: str, metric: str) -> Row | None:
        """The summary of a metric that has one value per run; None where there is none."""
        rows = self._summaries(method, protocol, metric)
        return next((row for row in rows if is_missing(row["index"])), None)

    def curve(self, method: str, protocol: str, metric: str) -> list[Row]:
        """The summaries of a metric that has a value per stage, where it is known, by stage."""
        rows = self._summaries(method, protocol, metric)
        known = [row for row in rows if not is_missing(row["index"]) and not is_missing(row["mean"])]
        return sorted(known, key=lambda row: row["index"])

    def cells(self, method: str, protocol: str) -> dict[tuple[int, int], Row]:
        """The mean accuracy matrix of a method: (stage, position) → row; what was not measured is absent."""
        rows = [row for row in self.matrix if (row["method"], row["protocol"]) == (method, protocol)]
        return {(row["stage"], row["position"]): row for row in rows if not is_missing(row["mean"])}

    def recorded(self, method: str, curve: str) -> list[Row]:
        """A curve over samples seen, under the study's own protocol."""
        rows = [row for row in self.curves if (row["method"], row["curve"]) == (method, curve)]
        return sorted(
            (row for row in rows if row["protocol"] in (None, self.protocol)), key=lambda row: row["samples_seen"]
        )

    def orders_of(self, method: str) -> list[Row]:
        """What the order changes for a method, under the study's own protocol."""
        return [row for row in self.orders if (row["method"], row["protocol"]) == (method, self.protocol)]

    def _summaries(self, method: str, protocol: str, metric: str) -> Iterable[Row]:
        key = (method, protocol, metric)
        rows = (row for row in self.summary if (row["method"], row["protocol"], row["metric"]) == key)
        return (row for row in rows if row["task"] is None)


def read(job: Job) -> Study:
    """Read all that the report needs; raises `ArtifactError` where something is missing or was changed."""
    lock = job.read_json("plan/lock.json")
    metrics = job.read_table("aggregate/metrics.parquet", "metrics")
    nulls = metrics.filter(
        pc.field("value").is_null(nan_is_null=True) & pc.field("index").is_null() & pc.field("task").is_null()
    )
    comparisons = _numbered(job.read_table("statistics/comparisons.parquet", "comparisons"))
    return Study(
        lock=lock,
        summary=_numbered(job.read_table("aggregate/summary.parquet", "summary")),
        matrix=_numbered(job.read_table("aggregate/matrix.parquet", "matrix_summary")),
        costs=sorted(
            _numbered(job.read_table("aggregate/costs.parquet", "costs")),
            key=lambda row: list(lock["methods"]).index(row["method"]),
        ),
        curves=job.read_table("aggregate/curves.parquet", "curves").to_pylist(),
        comparisons=_in_order_of_plan(comparisons, lock),
        failures=_numbered(job.read_table("aggregate/failures.parquet", "failures")),
        orders=_numbered(job.read_table("statistics/orders.parquet", "orders")),
        decisions=_numbered(job.read_table("statistics/decisions.parquet", "decisions")),
        reasons=_reasons(nulls),
        root=job.read_json("audit/root.json"),
        data=job.read_footer("data/samples.parquet"),
        manifest=read_manifest(job),
        history=read_history(job.study, lock),
    )


def _numbered(table: pa.Table) -> list[Row]:
    """Rows of a table with their numbers in it, by which what was printed of them can be traced."""
    return [{**row, ROW: number} for number, row in enumerate(table.to_pylist())]


def _in_order_of_plan(comparisons: list[Row], lock: Row) -> list[Row]:
    analysis = lock["study"]["analysis"]
    named = [analysis["primary"]["name"], *(secondary["name"] for secondary in analysis["secondary"])]
    place = {name: position for position, name in enumerate(named)}
    return sorted(comparisons, key=lambda row: (place.get(row["comparison"], len(place)), row["comparison"]))


def _reasons(nulls: pa.Table) -> dict[tuple[str, str, str], tuple[str, ...]]:
    # Thousands of runs lack a value for the same few reasons: each once.
    methods = pc.replace_substring_regex(nulls["run"], "/[^/]*$", "")
    keys = ["method", "protocol", "metric", "missing"]
    distinct = nulls.append_column("method", methods).group_by(keys, use_threads=False).aggregate([])
    found: dict[tuple[str, str, str], set[str]] = {}
    for row in distinct.to_pylist():
        if row["missing"]:
            found.setdefault((row["method"], row["protocol"], row["metric"]), set()).add(row["missing"])
    return {key: tuple(sorted(reasons)) for key, reasons in found.items()}
