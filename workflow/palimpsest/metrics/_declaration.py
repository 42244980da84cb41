"""What a metric declares about itself, and what it is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from palimpsest.core.errors import MatrixError

Direction = Literal["higher", "lower"]
Index = Literal["k", "task", "b", "beta"]

# The protocol of a matrix of which nothing else is known.
UNKNOWN = "unknown"
PROTOCOLS = ("class_incremental", "task_incremental", "domain_incremental", UNKNOWN)
NO_BOUNDARIES = "the stream has no boundaries between tasks"


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    Args:
        direction: which values are better.
        range: the lowest and the highest value; attained, but for those of which the docstring says otherwise.
        index: what the last axis of the result runs over: nothing (one value per run), `k` (one per stage), `task`,
            `b` (one per number of mini-batches that was probed) or `beta` (the same as far as none was left out).
        min_tasks: the formula is undefined for fewer tasks.
        square: stage k must be the only training of the task at position k.
        needs_boundaries: it is undefined where a run is not divided into tasks; if not, it looks at the end of the run,
            at all probes alike, or at the stream.
        undefined_in: protocols in which the value would carry no information, each with the reason.
        undefined_where: the condition on measured values under which the formula gives NaN; empty if there is none.
        unit: unit of the value.
        label: what it is called in words, where that is more than its name.
    """

    direction: Direction
    range: tuple[float, float]
    index: Index | None = None
    min_tasks: int = 1
    square: bool = True
    needs_boundaries: bool = True
    undefined_in: Mapping[str, str] = field(default_factory=dict)
    undefined_where: str = ""
    unit: str = "fraction"
    label: str = ""

    @property
    def is_accuracy(self) -> bool:
        """Whether the value is an accuracy; if not, it is a difference of accuracies, which may be clipped at 0."""
        return self.direction == "higher" and self.range[0] == 0


@dataclass(frozen=True)
class Elsewhere:
    """What a published program computes under a name that a metric here bears or is taken for.

    Args:
        program: name of the program.
        name: what the value is called there.
        place: repository and file in which it was read, or the paper.
        ours: the metric here that has the same values, empty if none has.
        factor: what ours is to be multiplied by: `1`, `-1` or `(T-1)/T`.
        remark: where it departs, or under which condition the values are the same.
    """

    program: str
    name: str
    place: str
    ours: str = ""
    factor: Literal["1", "-1", "(T-1)/T"] = "1"
    remark: str = ""


@dataclass(frozen=True)
class Inputs:
    """Accuracies of one run, or of several that share their number of tasks, and of the reference runs.

    All accuracies are fractions in [0, 1], NaN where nothing was measured; what was not run or recorded is None.

    Args:
        accuracy: `a[..., stage, task]`.
        protocol: under which the predictions were scored ("class_incremental").
        n_total: test samples of each task, `[..., task]`; NaN where nothing was measured.
        random_init: accuracy of the untrained model on each task, `[..., task]`.
        isolated: accuracy on each task of a model trained on it alone, `[..., task]`.
        joint_at_k: accuracy on the task at position k of a model trained on the union of tasks 1…k, `[..., k]`.
        joint: accuracy on each task of a model trained on the union of all, `[..., task]`.
        batches: the numbers of mini-batches after which a stage was probed, `[b]`: 0 first, increasing.
        after_batches: accuracy on the task of stage k after that many of its mini-batches, `[..., k, b]`.
        probe_peak: highest accuracy on each task over all probes and stage ends, `[..., task]`.
        probe_end: accuracy on each task at the end of the run, on the samples of the probes, `[..., task]`.
        stream_correct: at each stage, samples that were classified correctly before they were trained on, at their
            first presentation, `[..., stage]`.
        stream_total: at each stage, samples that were presented for the first time, `[..., stage]`.
        first_stage: number of the first row, for the names of absent cells; 0 for an untrained model.
        has_boundaries: whether the run was divided into tasks.

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
    batches: np.ndarray | None = None
    after_batches: np.ndarray | None = None
    probe_peak: np.ndarray | None = None
    probe_end: np.ndarray | None = None
    stream_correct: np.ndarray | None = None
    stream_total: np.ndarray | None = None
    first_stage: int = 1
    has_boundaries: bool = True

    def __post_init__(self) -> None:
        if self.accuracy.ndim < 2 or 0 in self.accuracy.shape[-2:]:
            raise _error("accuracy", "axes [..., stage, task], none of them empty", f"shape {self.accuracy.shape}")
        _require_grid(self.batches, self.after_batches)
        for name, values in self.arrays().items():
            if values.shape[-1] != self._length(name):
                raise _error(name, f"{self._length(name)} values along the last axis", f"shape {values.shape}")
            if name in COUNTS:
                _require_counts(name, values)
            else:
                _require_fractions(name, values)
        if self.after_batches is not None and self.after_batches.shape[-2:-1] != (self.n_stages,):
            raise _error("after_batches", f"{self.n_stages} stages", f"shape {self.after_batches.shape}")
        if self.stream_correct is not None and self.stream_total is not None:
            _require_part(self.stream_correct, self.stream_total)

    @property
    def n_stages(self) -> int:
        """Number of rows of the matrix."""
        return self.accuracy.shape[-2]

    @property
    def n_tasks(self) -> int:
        """Number of columns of the matrix, T."""
        return self.accuracy.shape[-1]

    def arrays(self) -> dict[str, np.ndarray]:
        """What was measured and is there, by name: every array but the grid `batches`."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in NOT_MEASURED}
        return {name: array for name, array in values.items() if array is not None}

    def given(self) -> dict[str, np.ndarray]:
        """What a metric may ask for: what was measured, and the grid."""
        return self.arrays() | ({} if self.batches is None else {"batches": self.batches})

    def _length(self, name: str) -> int:
        if name in ("stream_correct", "stream_total"):
            return self.n_stages
        return self.n_tasks if name != "after_batches" or self.batches is None else len(self.batches)


NOT_MEASURED = ("protocol", "first_stage", "has_boundaries", "batches")
# Least value of each input that is a count and no accuracy.
COUNTS = {"n_total": 1, "stream_correct": 0, "stream_total": 1}


def require_protocol(name: str) -> None:
    """Raise `MatrixError` where there is no such protocol: by a misprint, what is undefined would get a value."""
    if name not in PROTOCOLS:
        raise MatrixError(
            "a protocol that is not known",
            where="protocol",
            expected=f"one of {', '.join(PROTOCOLS)}",
            got=repr(name),
            next="choose one of them",
        )


def at_last_stage(joint: np.ndarray) -> np.ndarray:
    """`joint_at_k` where the only joint model is that of all tasks: NaN but for the last stage.

    >>> at_last_stage(np.array([0.8, 0.9]))
    array([nan, 0.9])
    """
    return np.where(np.arange(len(joint)) == len(joint) - 1, joint, np.nan)


def without_gaps(batches: np.ndarray) -> int:
    """How many numbers of mini-batches, from 0 on, were probed before the first one was left out.

    >>> without_gaps(np.array([0, 1, 2, 4, 8]))
    3
    """
    return int(np.sum(np.cumprod(batches == np.arange(len(batches)))))


def _require_fractions(name: str, values: np.ndarray) -> None:
    wrong = values[(values < 0) | (values > 1)]
    if wrong.size:
        raise _error(name, "fractions in [0, 1], NaN where nothing was measured", f"{wrong.flat[0]:g}")


def _require_counts(name: str, values: np.ndarray) -> None:
    wrong = values[(values < COUNTS[name]) | (values != np.floor(values)) & ~np.isnan(values)]
    if wrong.size:
        raise _error(name, f"whole numbers of samples, at least {COUNTS[name]}", f"{wrong.flat[0]:g}")


def _require_part(correct: np.ndarray, total: np.ndarray) -> None:
    wrong = np.broadcast_to(correct, np.broadcast_shapes(correct.shape, total.shape))[correct > total]
    if wrong.size:
        raise _error("stream_correct", "at most as many samples as in stream_total", f"{wrong.flat[0]:g}")


def _require_grid(batches: np.ndarray | None, after_batches: np.ndarray | None) -> None:
    if (batches is None) != (after_batches is None):
        raise _error("batches", "given together with after_batches", "one of the two")
    if batches is None:
        return
    if batches.ndim != 1 or not len(batches) or batches[0] != 0 or np.any(np.diff(batches) < 1):
        raise _error("batches", "whole numbers of mini-batches: 0 first, increasing", f"{batches.tolist()}")


def _error(name: str, expected: str, got: str) -> MatrixError:
    return MatrixError(
        "metrics cannot be computed from this accuracy matrix",
        where=name,
        expected=expected,
        got=got,
        next="divide percent by 100; leave cells that were not measured empty",
    )
