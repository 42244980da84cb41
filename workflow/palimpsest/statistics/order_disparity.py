"""How much the final accuracy on a task depends on the order in which the tasks came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Final = Mapping[str, Mapping[str, Mapping[str, float | None]]]


@dataclass(frozen=True)
class OrderDisparity:
    """Disparity of each task, and over the tasks its maximum and mean; None where undefined, with the reason.

    Args:
        by_task: OPD_t.
        maximum: MOPD = max_t OPD_t.
        mean: AOPD = mean_t OPD_t.
        n_orders: number of orders.
        n_seeds: the smallest number of seeds of an order.
        reason: why there is no value.
    """

    by_task: Mapping[str, float | None]
    maximum: float | None
    mean: float | None
    n_orders: int
    n_seeds: int
    reason: str | None


def order_disparity(final: Final) -> OrderDisparity:
    """OPD_t = max − min over orders of task t's final accuracy, each order's value a mean over its seeds.

    In [0, 1] for fractions. Undefined for fewer than two orders, for an order with a single seed (what looks like the
    order may be the seed), and where a run has no final accuracy.

    Args:
        final: final accuracy by order, seed and task.

    Reference: Yoon et al., Scalable and Order-robust Continual Learning with Additive Parameter Decomposition,
    ICLR 2020.
    """
    tasks = sorted({task for seeds in final.values() for finals in seeds.values() for task in finals})
    n_seeds = min((len(seeds) for seeds in final.values()), default=0)
    reason = _undefined(final, tasks, n_seeds)
    if reason is not None:
        return OrderDisparity(dict.fromkeys(tasks), None, None, len(final), n_seeds, reason)
    by_task = {}
    for task in tasks:
        means = [np.mean([finals[task] for finals in seeds.values()]) for seeds in final.values()]
        by_task[task] = float(max(means) - min(means))
    values = list(by_task.values())
    return OrderDisparity(by_task, max(values), float(np.mean(values)), len(final), n_seeds, None)


def _undefined(final: Final, tasks: list[str], n_seeds: int) -> str | None:
    if len(final) < 2:
        return "fewer than two orders"
    if n_seeds < 2:
        return "one seed per order: order and seed cannot be told apart"
    absent = [
        f"{task} in {seed}-{order}"
        for order, seeds in final.items()
        for seed, finals in seeds.items()
        for task in tasks
        if finals.get(task) is None
    ]
    return "no final accuracy: " + ", ".join(absent) if absent else None
