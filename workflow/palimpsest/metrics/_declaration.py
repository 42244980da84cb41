"""What a metric declares about itself, and what it is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from palimpsest.core.errors import MatrixError

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    Args:
        direction: which values are better.
        range: the lowest and the highest attainable value.
        index: what the last axis of the result runs over: nothing (one value per run), `k` (one per stage) or `task`.
        min_tasks: the formula is undefined for fewer tasks.
        square: stage k must be the only training of the task at position k.
        undefined_in: protocols in which the value would carry no information, each with the reason.
        unit: unit of the value.
        label: what it is called in words, where that is more than its name.
    """

    direction: Direction
    range: tuple[float, float]
    index: Literal["k", "task"] | None = None
    min_tasks: int = 1
    square: bool = True
    undefined_in: Mapping[str, str] = field(default_factory=dict)
    unit: str = "fraction"
    label: str = ""

    @property
    def is_accuracy(self) -> bool:
        """Whether the value is an accuracy; if not, it is a difference of accuracies, which may be clipped at 0."""
        return self.direction == "higher" and self.range[0] == 0


@dataclass(frozen=True)
class Inputs:
    """Accuracies of one run, or of several that share their number of tasks, and of the reference runs.

    All accuracies are fractions in [0, 1], NaN where nothing was measured; a reference that was not run is None.

    Args:
        accuracy: `a[..., stage, task]`.
        protocol: under which the predictions were scored ("class_incremental").
        n_total: test samples of each task, `[..., task]`; NaN where nothing was measured.
        random_init: accuracy of the untrained model on each task, `[..., task]`.
        isolated: accuracy on each task of a model trained on it alone, `[..., task]`.
        joint_at_k: accuracy on the task at position k of a model trained on the union of tasks 1…k, `[..., k]`.
        joint: accuracy on each task of a model trained on the union of all, `[..., task]`.
        first_stage: number of the first row, for the names of absent cells; 0 for an untrained model.

    Raises:
        MatrixError: an axis has another length than the tasks, or a value is not a fraction.
    """

    accuracy: np.ndarray
    protocol: str
    n_total: np.ndarray | None = None
    random_init: np.ndarray | None = None
    isolated: np.ndarray | None = None
    joint_at_k: np.ndarray | None = None
    joint: np.ndarray | None = None
    first_stage: int = 1

    def __post_init__(self) -> None:
        if self.accuracy.ndim < 2 or 0 in self.accuracy.shape[-2:]:
            raise _error("accuracy", "axes [..., stage, task], none of them empty", f"shape {self.accuracy.shape}")
        for name, values in self.arrays().items():
            if values.shape[-1] != self.n_tasks:
                raise _error(name, f"{self.n_tasks} values along the last axis", f"shape {values.shape}")
            if name == "n_total":
                _require_counts(values)
            else:
                _require_fractions(name, values)

    @property
    def n_stages(self) -> int:
        """Number of rows of the matrix."""
        return self.accuracy.shape[-2]

    @property
    def n_tasks(self) -> int:
        """Number of columns of the matrix, T."""
        return self.accuracy.shape[-1]

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that are there, by their names."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("protocol", "first_stage")}
        return {name: array for name, array in values.items() if array is not None}


def _require_fractions(name: str, values: np.ndarray) -> None:
    wrong = values[(values < 0) | (values > 1)]
    if wrong.size:
        raise _error(name, "fractions in [0, 1], NaN where nothing was measured", f"{wrong.flat[0]:g}")


def _require_counts(values: np.ndarray) -> None:
    wrong = values[(values < 1) | (values != np.floor(values)) & ~np.isnan(values)]
    if wrong.size:
        raise _error("n_total", "whole numbers of test samples, at least 1", f"{wrong.flat[0]:g}")


def _error(name: str, expected: str, got: str) -> MatrixError:
    return MatrixError(
        "metrics cannot be computed from this accuracy matrix",
        where=name,
        expected=expected,
        got=got,
        next="divide percent by 100; leave cells that were not measured empty",
    )
