"""Values of metrics and, where there is none, the reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import NO_BOUNDARIES, UNKNOWN, Inputs, Metric, without_gaps

# Absent cells are tried out in groups, so that a run of 100 tasks needs megabytes and not gigabytes.
_TRIALS_AT_ONCE = 256
# Values with which every formula is defined: 0.5, but for what must differ from it.
_TRIAL = {"random_init": 0.25, "joint": 0.75}


def declaration(name: str) -> Metric:
    """What the metric declares.

    Raises:
        StudyError: there is no such metric.
    """
    return METRICS.load(name, "metrics").METRIC


def values(name: str, inputs: Inputs) -> np.ndarray:
    """Values of a metric, NaN where it is undefined.

    Returns:
        `[...]` over the runs, or `[..., i]` over `places(name, inputs)` for a metric with an index.
    """
    if _undefined(name, inputs) is not None:
        own_shape = () if declaration(name).index is None else (len(places(name, inputs)),)
        return np.full(inputs.accuracy.shape[:-2] + own_shape, np.nan)
    return _call(name, inputs.given())


def rows(name: str, inputs: Inputs) -> list[dict[str, Any]]:
    """One row per value of a metric of one run: `metric, index, task, value, unit, direction, missing`.

    `task` is the position of the task, from 1 on, for a metric with one value per task; `index` is k or b.
    """
    metric = declaration(name)
    cells = zip(places(name, inputs), np.atleast_1d(values(name, inputs)), missing(name, inputs), strict=True)
    return [
        {
            "metric": name,
            "index": None if metric.index == "task" else at,
            "task": at if metric.index == "task" else None,
            "value": None if np.isnan(value) else float(value),
            "unit": metric.unit,
            "direction": metric.direction,
            "missing": reason,
        }
        for at, value, reason in cells
    ]


def places(name: str, inputs: Inputs) -> list[int | None]:
    """What the values of a metric belong to: stages, positions of tasks from 1 on, numbers of mini-batches.

    None for the one value of a metric without index, and for the one null of a metric over mini-batches in a run that
    was not probed.
    """
    index = declaration(name).index
    if index == "k":
        return list(range(inputs.first_stage, inputs.first_stage + inputs.n_stages))
    if index == "task":
        return list(range(1, inputs.n_tasks + 1))
    if index is None or inputs.batches is None:
        return [None]
    return [int(b) for b in inputs.batches[: without_gaps(inputs.batches) if index == "beta" else None]]


def missing(name: str, inputs: Inputs) -> list[str | None]:
    """Why values are null: one reason per value of a single run, None where there is a value.

    A reason is the condition that does not hold ("T < 2", "no reference run isolated") or the names of the absent
    cells that the formula needs, counted as in the formula (`a[1,3]`, `isolated[2]`). Which cells it needs is found
    by asking it: a cell is needed where its absence alone makes the value NaN. Where all that is needed was measured,
    the reason is the condition that the metric declares as `undefined_where`.
    """
    assert inputs.accuracy.ndim == 2, "reasons are given for one run"
    undefined = _undefined(name, inputs)
    result = np.atleast_1d(values(name, inputs))
    if undefined is not None:
        return [undefined] * result.size
    if not np.isnan(result).any():
        return [None] * result.size
    needed: list[list[str]] = [[] for _ in range(result.size)]
    for need, cell, nulls in _tried(name, inputs, np.isnan):
        for position in np.flatnonzero(nulls):
            needed[position].append(_cell_name(need, cell, inputs))
    otherwise = declaration(name).undefined_where
    return [
        ", ".join(cells) or (otherwise if np.isnan(value) else None)
        for cells, value in zip(needed, result, strict=True)
    ]


def _undefined(name: str, inputs: Inputs) -> str | None:
    metric = declaration(name)
    if inputs.protocol == UNKNOWN and metric.undefined_in:
        return f"the protocol is not known, and it is undefined in {' and '.join(metric.undefined_in)} studies"
    if inputs.protocol in metric.undefined_in:
        return metric.undefined_in[inputs.protocol]
    if metric.needs_boundaries and not inputs.has_boundaries:
        return NO_BOUNDARIES
    if inputs.n_tasks < metric.min_tasks:
        return f"T < {metric.min_tasks}"
    if metric.square and inputs.n_stages != inputs.n_tasks:
        return "not as many stages as tasks"
    absent = [need for need in needs(name) if getattr(inputs, need) is None]
    return "; ".join(dict.fromkeys(no_input(need) for need in absent)) or None


def no_input(need: str) -> str:
    """Why a metric is null where an input that it needs is not there."""
    reasons = {"n_total": "no numbers of test samples", "stream_correct": "no stream", "stream_total": "no stream"}
    if need in ("batches", "after_batches", "probe_peak", "probe_end"):
        return "not probed"
    return reasons.get(need, f"no reference run {need.removesuffix('_at_k')}")


def needed(name: str, inputs: Inputs, place: int | None) -> list[tuple[str, tuple[int, ...]]]:
    """The cells that one value of a metric is computed from, measured or not: name of the input, and index.

    Args:
        name: of the metric.
        inputs: of a single run.
        place: what the value belongs to, one of `places(name, inputs)`.
    """
    if _undefined(name, inputs) is not None:
        return []
    position = places(name, inputs).index(place)
    cells = _tried(name, inputs, lambda array: np.ones(array.shape, bool))
    return [(need, tuple(map(int, cell))) for need, cell, nulls in cells if nulls[position]]


def _tried(
    name: str, inputs: Inputs, which: Callable[[np.ndarray], np.ndarray]
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Input and index of some cells of each input, and which values are NaN where this cell alone is absent."""
    arrays = inputs.arrays()
    complete = {
        **inputs.given(),
        **{need: np.full(array.shape, _TRIAL.get(need, 0.5)) for need, array in arrays.items()},
    }
    for need in [need for need in needs(name) if need in arrays]:
        wanted = np.argwhere(which(arrays[need]))
        for start in range(0, len(wanted), _TRIALS_AT_ONCE):
            cells = wanted[start : start + _TRIALS_AT_ONCE]
            probes = np.full((len(cells), *arrays[need].shape), _TRIAL.get(need, 0.5))
            probes[(np.arange(len(cells)), *cells.T)] = np.nan
            outcomes = np.isnan(_call(name, {**complete, need: probes})).reshape(len(cells), -1)
            yield from ((need, cell, nulls) for cell, nulls in zip(cells, outcomes, strict=True))


def _cell_name(need: str, cell: np.ndarray, inputs: Inputs) -> str:
    if need == "accuracy":
        return f"a[{cell[0] + inputs.first_stage},{cell[1] + 1}]"
    if need == "after_batches":
        return f"{need}[{cell[0] + 1},{inputs.batches[cell[1]]}]"
    return f"{need}[{cell[0] + 1}]"


def _call(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(_function(name)(*(arrays[need] for need in needs(name))))


@cache
def _function(name: str) -> Callable[..., np.ndarray]:
    return getattr(METRICS.load(name, "metrics"), name)


@cache
def needs(name: str) -> tuple[str, ...]:
    """The fields of `Inputs` that a metric is computed from: the parameters of its function."""
    return tuple(inspect.signature(_function(name)).parameters)
