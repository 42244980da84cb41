"""Which tasks each stage of a run trains on, and from which stage it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Stage = dict[str, Any]

SCHEDULES = ("sequential", "cumulative", "joint", "isolated", "untrained")


def stages(schedule: str, order: Sequence[str], joint: str | None = None) -> list[Stage]:
    """The stages of a run.

    ============ ============================== ==================
    schedule     stage k trains on              starts from
    ============ ============================== ==================
    sequential   task k                         stage k − 1
    cumulative   tasks 1 … k                    stage k − 1
    joint        tasks 1 … k (`final`: k = T)   fresh weights
    isolated     task k                         fresh weights
    untrained    nothing (the one stage is 0)   fresh weights
    ============ ============================== ==================

    Args:
        schedule: one of `SCHEDULES`.
        order: task ids in the order of the run.
        joint: `final` or `per_stage`, for the schedule joint.

    Returns:
        `{stage, task, tasks, visit, parent}` for each stage: `task` names what is trained (`t1`, or `t1+t2` for a
        union, null for nothing), `visit` counts from 1 how often the run has come to it, `parent` is the stage from
        whose checkpoint it starts, or null.
    """
    last = len(order)
    made = {
        "sequential": lambda: [([order[k - 1]], k - 1 or None) for k in range(1, last + 1)],
        "cumulative": lambda: [(list(order[:k]), k - 1 or None) for k in range(1, last + 1)],
        "joint": lambda: [(list(order[:k]), None) for k in range(1 if joint == "per_stage" else last, last + 1)],
        "isolated": lambda: [([task], None) for task in order],
        "untrained": lambda: [([], None)],
    }[schedule]()
    numbers = range(last - len(made) + 1, last + 1) if schedule != "untrained" else [0]
    names = ["+".join(tasks) or None for tasks, _ in made]
    return [
        {"stage": k, "task": name, "tasks": tasks, "visit": names[: index + 1].count(name), "parent": parent}
        for index, (k, name, (tasks, parent)) in enumerate(zip(numbers, names, made, strict=True))
    ]


def ancestry(stages: Sequence[Stage], stage: Stage) -> list[Stage]:
    """The stages from which a stage descends, the first one first, and itself."""
    parent = next((s for s in stages if s["stage"] == stage["parent"]), None)
    return [*(ancestry(stages, parent) if parent is not None else []), stage]


def seen_tasks(stages: Sequence[Stage], stage: Stage) -> list[str]:
    """Tasks that the model of a stage was trained on, its own included, each once, in the order in which they came."""
    return list(dict.fromkeys(task for ancestor in ancestry(stages, stage) for task in ancestor["tasks"]))


def earlier_tasks(stages: Sequence[Stage], stage: Stage) -> list[str]:
    """Tasks of the stages from which a stage descends, each once, in the order in which they came."""
    return list(dict.fromkeys(task for ancestor in ancestry(stages, stage)[:-1] for task in ancestor["tasks"]))
