"""How the final accuracy on each task depends on the order: rows of the table `orders`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.core.streams import generator
from palimpsest.core.tables import TABLES
from palimpsest.statistics.coverage import measured
from palimpsest.statistics.order_bootstrap import QUANTILE_COVERAGE, WORST_QUANTILE, worst_quantile_interval
from palimpsest.statistics.order_disparity import OrderDisparity, order_disparity
from palimpsest.statistics.variance import SOURCES, split_variance

QUANTILES = (WORST_QUANTILE, 1 - WORST_QUANTILE)
ALPHA = 0.05
_EMPTY = tuple(TABLES["orders"].schema.names)


@dataclass(frozen=True)
class FinalAccuracy:
    """Accuracy on one task at the end of one run.

    Args:
        method, protocol, task: of what.
        seed, order: of the run's unit.
        position: of the task in that order, as the plan counts it.
        value: a fraction; None where the run ended before.
    """

    method: str
    protocol: str
    task: str
    seed: int
    order: str
    position: int
    value: float | None


def order_rows(finals: Sequence[FinalAccuracy]) -> list[dict[str, Any]]:
    """Rows by method, protocol and task; `by` says what a row is about.

    ============ ==============================================================================================
    all          all runs, with the task's order disparity and a bootstrap interval of the worst (5 %) quantile
    order        the runs of one order, which is the `level`
    position     the runs that had the task in one position, the `level`: over the levels, the position curve
    variance     a component of the variance; the `level` is order, seed or rest (`variance.split_variance`)
    maximum      no task: the largest order disparity of the tasks
    mean         no task: the mean order disparity of the tasks
    any task ... `any task by position`, no task: all tasks together, by position
    ============ ==============================================================================================

    `missing` says why a disparity, an interval or a component is null, `note` how often such an interval covers.
    """
    groups: dict[tuple[str, str], list[FinalAccuracy]] = defaultdict(list)
    for final in finals:
        groups[final.method, final.protocol].append(final)
    return [row for group in groups.values() for row in _rows_of_method(group)]


def describe(values: Iterable[float | None]) -> dict[str, Any]:
    """n, mean, sample SD (divisor n − 1, None for n < 2), 5 % and 95 % quantile and worst of the values that are there.

    >>> describe([0.25, None, 0.75])["mean"]
    0.5
    """
    found = np.array([value for value in values if value is not None])
    if not len(found):
        return {"n": 0, **dict.fromkeys(("mean", "sd", "quantile_low", "quantile_high", "worst"))}
    low, high = np.quantile(found, QUANTILES)
    return {
        "n": len(found),
        "mean": float(found.mean()),
        "sd": float(found.std(ddof=1)) if len(found) > 1 else None,
        "quantile_low": float(low),
        "quantile_high": float(high),
        "worst": float(found.min()),
    }


def _rows_of_method(finals: Sequence[FinalAccuracy]) -> list[dict[str, Any]]:
    disparity = order_disparity(_by_order_and_seed(finals))
    about = {
        "method": finals[0].method,
        "protocol": finals[0].protocol,
        "n_orders": disparity.n_orders,
        "n_seeds": disparity.n_seeds,
    }
    by_task: dict[str, list[FinalAccuracy]] = defaultdict(list)
    for final in finals:
        by_task[final.task].append(final)
    rows = [row for task, of_task in by_task.items() for row in _rows_of_task(task, of_task, disparity)]
    rows += _levels(finals, "any task by position", lambda final: str(final.position))
    rows += [
        {"by": by, **describe([]), "order_disparity": value, "missing": disparity.reason}
        for by, value in (("maximum", disparity.maximum), ("mean", disparity.mean))
    ]
    return [{**dict.fromkeys(_EMPTY), **about, **row} for row in rows]


def _rows_of_task(task: str, finals: Sequence[FinalAccuracy], disparity: OrderDisparity) -> list[dict[str, Any]]:
    values = [final.value for final in finals]
    low, high, note, reason = _worst_quantile(finals)
    everything = {
        "by": "all",
        **describe(values),
        "order_disparity": disparity.by_task.get(task),
        "worst_quantile_low": low,
        "worst_quantile_high": high,
        "note": note,
        "missing": "; ".join(filter(None, (disparity.reason, reason))) or None,
    }
    rows = [everything, *_levels(finals, "order", lambda final: final.order)]
    rows += _levels(finals, "position", lambda final: str(final.position))
    return [{**row, "task": task} for row in [*rows, *_variance(finals)]]


def _levels(finals: Sequence[FinalAccuracy], by: str, level_of: Callable[[FinalAccuracy], str]) -> list[dict[str, Any]]:
    levels: dict[str, list[float | None]] = defaultdict(list)
    for final in finals:
        levels[level_of(final)].append(final.value)
    return [{"by": by, "level": level, **describe(values)} for level, values in levels.items()]


def _worst_quantile(finals: Sequence[FinalAccuracy]) -> tuple[float | None, float | None, str | None, str | None]:
    """The bootstrap interval, its footnote, and the reason where there is none."""
    there = [final for final in finals if final.value is not None]
    runs_of_order = Counter(final.order for final in there)
    if not there or min(runs_of_order.values()) < 2:
        return None, None, None, "worst quantile: an order with a single run cannot be resampled"
    key = (finals[0].method, finals[0].protocol, finals[0].task)
    values = np.array([final.value for final in there], dtype=float)
    orders = [final.order for final in there]
    low, high = worst_quantile_interval(values, orders, ALPHA, generator("bootstrap", *key))
    return float(low), float(high), f"worst quantile: {measured(QUANTILE_COVERAGE, len(there), 'runs')}", None


def _variance(finals: Sequence[FinalAccuracy]) -> list[dict[str, Any]]:
    components, reason = split_variance(
        [final.value for final in finals], [final.seed for final in finals], [final.order for final in finals]
    )
    rows = []
    for source in SOURCES:
        found = components.get(source)
        values = (found.df, found.variance, found.share) if found else (None, None, None)
        of_row = dict(zip(("df", "variance", "variance_share"), values, strict=True))
        rows.append({"by": "variance", "level": source, "n": len(finals), **of_row, "missing": reason})
    return rows


def _by_order_and_seed(finals: Sequence[FinalAccuracy]) -> dict[str, dict[str, dict[str, float | None]]]:
    nested: dict[str, dict[str, dict[str, float | None]]] = {}
    for final in finals:
        seeds = nested.setdefault(final.order, {})
        seeds.setdefault(f"s{final.seed}", {})[final.task] = final.value
    return nested
