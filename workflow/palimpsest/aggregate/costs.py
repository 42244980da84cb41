"""What training cost, counted and not timed: the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Counted = Mapping[str, int]
Cost = dict[str, int]

# Of each cost that is summed over the stages of a run: what its stages count. The first one is all of training; shares
# of it follow, and then what was done beside it.
SUMS = {
    "flops": ("flops_steps", "flops_begin_task", "flops_after_task"),
    "flops_forward": ("flops_forward",),
    "flops_backward": ("flops_backward",),
    "flops_replayed": ("flops_replayed",),
    "flops_method": ("flops_begin_task", "flops_project", "flops_after_step", "flops_after_task"),
    "flops_validation": ("flops_validation",),
    "flops_probing": ("flops_probing",),
    "steps": ("steps",),
}
EVALUATION = "flops_evaluation"
# Of these the largest value at the end of a stage counts.
LARGEST = ("parameters", "parameters_added", "method_bytes", "memory_bytes", "copies_bytes")
# 1 if its stages were trained on several kinds of machine, which the plan allows or not; 0 otherwise.
SEVERAL = "several_machines"


def cost_of_run(stages: Sequence[Counted], flops_evaluation: int) -> Cost:
    """Sums over the stages of a run, and the most that one of them left.

    Args:
        stages: the field `counted` of each stage's record, in order; empty for a stage that was not trained.
        flops_evaluation: of all predictions for test samples.
    """
    trained = [counted for counted in stages if counted]
    sums = {cost: sum(counted[name] for counted in trained for name in names) for cost, names in SUMS.items()}
    largest = {name: max(counted[name] for counted in trained) for name in LARGEST}
    return {**sums, EVALUATION: flops_evaluation, **largest}


def summarise_costs(costs: Mapping[str, Iterable[Cost]], n_early_stopped: Mapping[str, int]) -> dict[str, list[Any]]:
    """Columns of the table `costs`: means over the runs of each method, and the largest of what they left.

    All but the counts of runs is null for a method without a complete run.

    Args:
        costs: of the complete runs, by method, with `SEVERAL`.
        n_early_stopped: how many of these have a stage that stopped early, as the plan declares.
    """
    rows = [
        _row(method, list(of_runs)) | {"n_early_stopped": n_early_stopped[method]} for method, of_runs in costs.items()
    ]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _row(method: str, costs: list[Cost]) -> dict[str, Any]:
    n = len(costs)
    means = {f"{name}_mean": sum(cost[name] for cost in costs) / n if n else None for name in (*SUMS, EVALUATION)}
    largest = {name: max((cost[name] for cost in costs), default=None) for name in LARGEST}
    renamed = {f"{name}_max" if name.endswith("bytes") else name: value for name, value in largest.items()}
    return {"method": method, "n": n, f"n_{SEVERAL}": sum(cost[SEVERAL] for cost in costs), **means, **renamed}
