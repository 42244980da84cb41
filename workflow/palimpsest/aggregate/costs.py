"""What training cost, counted and not timed: the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Counted = Mapping[str, int]


@dataclass(frozen=True)
class Cost:
    """What one run cost.

    Args:
        flops: of all steps, and of what the method does after each task.
        steps: optimizer steps.
        parameters: of the model at the end.
        method_bytes: tensors that the method keeps at the end, beside the model.
        flops_probing: of what was recorded beside the training, which is in no other number.
    """

    flops: int
    steps: int
    parameters: int
    method_bytes: int
    flops_probing: int


def cost_of_run(stages: Sequence[Counted]) -> Cost:
    """Sums over the stages of a run, and what its last stage left.

    Args:
        stages: the field `counted` of each stage's record, in order; empty for a stage that was not trained.

    >>> first = {"flops_steps": 5, "flops_after_task": 1, "steps": 2, "parameters": 7, "method_bytes": 0}
    >>> cost_of_run([{**first, "flops_probing": 3}, {**first, "method_bytes": 40, "flops_probing": 4}])
    Cost(flops=12, steps=4, parameters=7, method_bytes=40, flops_probing=7)
    """
    trained = [counted for counted in stages if counted]
    return Cost(
        flops=sum(counted["flops_steps"] + counted["flops_after_task"] for counted in trained),
        steps=sum(counted["steps"] for counted in trained),
        parameters=trained[-1]["parameters"],
        method_bytes=trained[-1]["method_bytes"],
        flops_probing=sum(counted["flops_probing"] for counted in trained),
    )


def summarise_costs(costs: Mapping[str, Iterable[Cost]]) -> dict[str, list[Any]]:
    """Columns of the table `costs`: means over the runs of each method, and the largest of what they left.

    All but `n` is null for a method without a complete run.

    Args:
        costs: of the complete runs, by method.
    """
    rows = [_row(method, list(of_runs)) for method, of_runs in costs.items()]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _row(method: str, costs: list[Cost]) -> dict[str, Any]:
    n = len(costs)
    return {
        "method": method,
        "n": n,
        "flops_mean": sum(cost.flops for cost in costs) / n if n else None,
        "parameters": max((cost.parameters for cost in costs), default=None),
        "method_bytes_max": max((cost.method_bytes for cost in costs), default=None),
        "steps_mean": sum(cost.steps for cost in costs) / n if n else None,
        "flops_probing_mean": sum(cost.flops_probing for cost in costs) / n if n else None,
    }
