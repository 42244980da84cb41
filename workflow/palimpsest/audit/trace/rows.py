"""Which rows of which tables a row of each kind came from, and what it says in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palimpsest.core.numbers import is_missing

if TYPE_CHECKING:
    from palimpsest.audit.trace.follow import Follow

Row = Mapping[str, Any]
METRICS, COMPARISONS = "aggregate/metrics.parquet", "statistics/comparisons.parquet"
SUMMARY, COSTS, DECISIONS = "aggregate/summary.parquet", "aggregate/costs.parquet", "statistics/decisions.parquet"
_FINAL = "final_accuracy"


@dataclass(frozen=True)
class Wanted:
    """Rows of a table by the values of some columns, or a whole artifact where none are given."""

    path: str
    where: Mapping[str, Any] | None = None


def _of_runs(follow: Follow, method: str, **where: Any) -> Iterator[Wanted]:
    """The rows of every run's own metrics."""
    for run in _runs(follow, method):
        yield Wanted(f"metrics/{run}.parquet", where)


def _runs(follow: Follow, method: str) -> list[str]:
    return [run["run"] for run in follow.lock["runs"] if run["method"] == method]


def _comparison(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    for method in (row["a"], row["b"]):
        yield from _of_runs(
            follow, method, protocol=row["protocol"], metric=row["metric"], index=row["index"], task=None
        )


def _summary(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    yield from _of_runs(follow, row["method"], **{name: row[name] for name in ("protocol", "metric", "index", "task")})


def _matrix_summary(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    for run in _runs(follow, row["method"]):
        tasks = list(dict.fromkeys(_unit(follow, run)["tasks"]))
        where = {"protocol": row["protocol"], "stage": row["stage"], "task": tasks[row["position"] - 1]}
        yield Wanted(f"evaluation/{run}/matrix.parquet", where)


def _curve(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    for run in _runs(follow, row["method"]):
        if row["curve"] == "stream":
            yield Wanted(f"runs/{run}/prequential.parquet", {})
        else:
            yield Wanted(f"runs/{run}/probes.parquet", {"protocol": row["protocol"], "group": row["curve"]})


def _order(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    """Final accuracies: of an order, of a position, or all."""
    for run in _runs(follow, row["method"]):
        unit = _unit(follow, run)
        tasks = [task for task in dict.fromkeys(unit["tasks"]) if row["task"] in (None, task)]
        if row["by"] == "order" and unit["order_id"] != row["level"]:
            continue
        if "position" in row["by"] and row["level"] is not None:
            tasks = [task for task in tasks if str(unit["tasks"].index(task) + 1) == row["level"]]
        for task in tasks:
            where = {"protocol": row["protocol"], "metric": _FINAL, "index": None, "task": task}
            yield Wanted(f"metrics/{run}.parquet", where)


def _decision(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    if row["comparison"] is not None:
        yield Wanted(COMPARISONS, {"comparison": row["comparison"]})
    elif row["kind"] == "verdict":
        yield Wanted(DECISIONS, {"kind": "gate"})
    elif row["quantity"] in ("average_accuracy", "forgetting"):
        protocol = follow.lock["study"]["analysis"]["primary"]["protocol"]
        about = {"metric": row["quantity"], "protocol": protocol, "index": None, "task": None}
        yield Wanted(SUMMARY, {"method": row["name"], **about})
    else:
        yield Wanted(COSTS, {"method": row["name"]})


def _cost(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    for run in _runs(follow, row["method"]):
        for stage in sorted((follow.study / "runs" / run).glob("stage-*.json")):
            yield Wanted(str(stage.relative_to(follow.study)))


def _failure(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    yield Wanted(f"runs/{row['run']}/outcome.parquet", {})


def _metric(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    """Of the table of all runs, the row of the run's own table; of that one, what the formula needs."""
    from palimpsest.metrics._origin import sources

    if path == METRICS:
        where = {name: row[name] for name in ("protocol", "metric", "index", "task")}
        yield Wanted(f"metrics/{row['run']}.parquet", where)
        return
    for source in sources(follow.job, row, follow.footer(path)["parameters"], follow.reader):
        yield Wanted(source.path, source.where)


def _cell(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    where = {"stage": row["stage"], "task": row["task"]}
    yield Wanted(path.replace("/matrix.parquet", "/predictions.parquet"), where)


def _sample(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    yield Wanted(path)


def _planned(follow: Follow, path: str, row: Row) -> Iterator[Wanted]:
    yield Wanted("plan/lock.json")


def _unit(follow: Follow, run: str) -> dict[str, Any]:
    return next(unit for unit in follow.lock["units"] if unit["unit"] == run.split("/")[1])


FOLLOWED: dict[str, Callable[[Follow, str, Row], Iterator[Wanted]]] = {
    "comparisons": _comparison,
    "summary": _summary,
    "matrix_summary": _matrix_summary,
    "curves": _curve,
    "orders": _order,
    "decisions": _decision,
    "costs": _cost,
    "failures": _failure,
    "metrics": _metric,
    "matrix": _cell,
    "samples": _sample,
    "units": _planned,
    "runs": _planned,
}
"""By the name of the table; what stands in no table is followed by the parents in its record."""


def _value(value: float | None) -> str:
    return "none" if is_missing(value) else f"{value:.6g}"


def _name(row: Row) -> str:
    places = [f"{name} {row[name]}" for name in ("index", "task") if row.get(name) is not None]
    return ", ".join([f"{row['metric']}, {row['protocol']}", *places])


LABELS: dict[str, Callable[[Row], str]] = {
    "comparisons": lambda row: (
        f"{row['comparison']}: {row['a']} − {row['b']}, {_name({**row, 'task': None})}: "
        f"mean {_value(row['mean'])} over {row['n']} pairs, {row['verdict']}"
    ),
    "summary": lambda row: f"{row['method']}, {_name(row)}: mean {_value(row['mean'])} over {row['n']} runs",
    "matrix_summary": lambda row: (
        f"{row['method']}, {row['protocol']}: after stage {row['stage']}, the task at position "
        f"{row['position']}: mean {_value(row['mean'])} over {row['n']} runs"
    ),
    "metrics": lambda row: (
        f"{row['run']}, {_name(row)}: {_value(row['value'])}"
        + (f" (missing: {row['missing']})" if row["missing"] else "")
    ),
    "matrix": lambda row: (
        f"{row['protocol']}, after stage {row['stage']} on {row['task']}: {row['n_correct']} of {row['n_total']} right"
    ),
    "ledger": lambda row: f"{row['path']}, {row['bytes']:,} bytes, sha256 {row['sha256'][:12]}",
    "runs": lambda row: (
        f"{row['run']}: specification {row['spec_hash'][:12]}, hyperparameters {row['hyperparameters']}"
    ),
}
"""What a row says, where listing its columns would be too long."""
