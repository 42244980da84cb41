"""Which outputs a sample may see."""

from __future__ import annotations

from typing import Any

import torch

from palimpsest.models._network import task_positions
from palimpsest.plan.schedule import seen_tasks


def visible_outputs(spec: dict[str, Any], stage: dict[str, Any], kind: str) -> torch.Tensor | None:
    """Outputs that samples of each task may see, `[n_tasks, n_outputs]` bool; none where all may be seen.

    Args:
        spec, stage: the run's specification, and the stage in it.
        kind: `all`, `seen` (outputs of tasks that the stage's model was trained on) or `current` (of the own task).
    """
    if kind == "all":
        return None
    mask = torch.zeros((len(spec["tasks"]), spec["inputs"]["n_outputs"]), dtype=torch.bool)
    for task, position in task_positions(spec["tasks"]).items():
        shown = seen_tasks(spec["stages"], stage) if kind == "seen" else [task]
        mask[position, [output for other in shown for output in spec["tasks"][other]]] = True
    return mask


def task_of_output(spec: dict[str, Any]) -> torch.Tensor | None:
    """Position of the task of each output, `[n_outputs]` int64; none where a label does not tell its task."""
    if not spec["inputs"]["label_tells_task"]:
        return None
    positions = torch.full((spec["inputs"]["n_outputs"],), -1)
    for task, position in task_positions(spec["tasks"]).items():
        positions[spec["tasks"][task]] = position
    return positions
