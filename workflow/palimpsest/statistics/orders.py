"""How the final accuracy on each task depends on the order: rows of the table `orders`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.statistics.order_disparity import OrderDisparity, order_disparity

QUANTILES = (0.05, 0.95)


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
    """Rows by method, protocol and task: over all runs, by order, by position, and the disparity between orders.

    `by` says what a row is about: `all` (with the task's order disparity), `order` and `position` (with the `level`),
    and without a task `maximum` and `mean` of the disparities over the tasks.
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
    levels: dict[tuple[str, str, str | None], list[float | None]] = defaultdict(list)
    for final in finals:
        for by, level in (("all", None), ("order", final.order), ("position", str(final.position))):
            levels[final.task, by, level].append(final.value)
    method, protocol = finals[0].method, finals[0].protocol
    rows = [
        _row(method, protocol, task, by, level, describe(values), disparity)
        for (task, by, level), values in levels.items()
    ]
    return rows + [_row(method, protocol, None, by, None, describe([]), disparity) for by in ("maximum", "mean")]


def _row(
    method: str,
    protocol: str,
    task: str | None,
    by: str,
    level: str | None,
    described: Mapping[str, Any],
    disparity: OrderDisparity,
) -> dict[str, Any]:
    of_row = {"maximum": disparity.maximum, "mean": disparity.mean, "all": disparity.by_task.get(task)}
    return {
        "method": method,
        "protocol": protocol,
        "task": task,
        "by": by,
        "level": level,
        **described,
        "n_orders": disparity.n_orders,
        "n_seeds": disparity.n_seeds,
        "order_disparity": of_row.get(by),
        "missing": disparity.reason if by in of_row else None,
    }


def _by_order_and_seed(finals: Sequence[FinalAccuracy]) -> dict[str, dict[str, dict[str, float | None]]]:
    nested: dict[str, dict[str, dict[str, float | None]]] = {}
    for final in finals:
        seeds = nested.setdefault(final.order, {})
        seeds.setdefault(f"s{final.seed}", {})[final.task] = final.value
    return nested
