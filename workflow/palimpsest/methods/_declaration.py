"""What a method says of itself, so that the report never compares unlike things unmarked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class Declaration:
    """What a method stores and needs.

    Args:
        stores_raw_data: keeps training samples after their task.
        needs_task_boundaries: must be told when a task ends.
        needs_task_identity: must be told the task of a test sample.
        grows: adds parameters while it learns.
        pairing: what its runs share with those of the other methods on the same unit: initial weights and
            mini-batches, or initial weights only.
        schedule: which tasks each stage trains on (`plan.schedule`).
    """

    stores_raw_data: bool = False
    needs_task_boundaries: bool = False
    needs_task_identity: bool = False
    grows: bool = False
    pairing: Literal["init+batches", "init"] = "init+batches"
    schedule: Literal["sequential", "cumulative", "joint", "isolated", "untrained"] = "sequential"


class NoHyperparameters(BaseModel):
    """Of a method that has none."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HyperparameterError(ValueError):
    """Hyperparameters that are valid one by one and impossible for this benchmark.

    Args:
        field: the hyperparameter.
        expected: what would have been accepted.
    """

    def __init__(self, field: str, expected: str) -> None:
        self.field, self.expected = field, expected
        super().__init__(f"{field}: expected {expected}")


class ModelError(ValueError):
    """A method that cannot work with the study's model.

    Args:
        expected: what would have been accepted.
        got: what stands there.
    """

    def __init__(self, expected: str, got: str) -> None:
        self.expected, self.got = expected, got
        super().__init__(f"expected {expected}; got {got}")


Facts = dict[str, Any]
"""What a plan tells of the inputs: `{shape, n_outputs, sample_bytes, label_bytes, label_tells_task, tasks}`.

`tasks` are the outputs of each task, in the sequence of the tasks' positions. To a method's `check` it also tells
`model: {name, options, head, reset_new_outputs, layered}`.
"""


def facts_of(inputs: dict[str, Any], tasks: Mapping[str, list[int]]) -> Facts:
    """Facts of a plan's inputs and of the outputs of its tasks."""
    return {**inputs, "tasks": [tasks[task] for task in sorted(tasks)]}
