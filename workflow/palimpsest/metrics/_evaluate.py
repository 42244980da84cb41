"""Values of metrics and, where there is none, the reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Inputs, Metric

# Absent cells are tried out in groups, so that a run of 100 tasks needs megabytes and not gigabytes.
_PROBES_AT_ONCE = 256


def declaration(name: str) -> Metric:
    """What the metric declares.

    Raises:
        StudyError: there is no such metric.
    """
    return METRICS.load(name, "metrics").METRIC


def values(name: str, inputs: Inputs) -> np.ndarray:
    """Values of a metric, NaN where it is undefined.

    Returns:
        `[...]` over the runs; `[..., n_stages]` for a metric with index `k`, `[..., n_tasks]` with index `task`.
    """
    if _undefined(name, inputs) is not None:
        return np.full(inputs.accuracy.shape[:-2] + _own_shape(name, inputs), np.nan)
    return _call(name, inputs.arrays())


def missing(name: str, inputs: Inputs) -> list[str | None]:
    """Why values are null: one reason per value of a single run, None where there is a value.

    A reason is the condition that does not hold ("T < 2", "no reference run isolated") or the names of the absent
    cells that the formula needs, counted as in the formula (`a[1,3]`, `isolated[2]`). Which cells it needs is found
    by asking it: a cell is needed where its absence alone makes the value NaN.
    """
    assert inputs.accuracy.ndim == 2, "reasons are given for one run"
    undefined = _undefined(name, inputs)
    result = np.atleast_1d(values(name, inputs))
    if undefined is not None:
        return [undefined] * result.size
    if not np.isnan(result).any():
        return [None] * result.size
    needed: list[list[str]] = [[] for _ in range(result.size)]
    for cell, nulls in _needed_cells(name, inputs):
        for position in np.flatnonzero(nulls):
            needed[position].append(cell)
    return [", ".join(cells) or None for cells in needed]


def _undefined(name: str, inputs: Inputs) -> str | None:
    metric = declaration(name)
    if inputs.protocol in metric.undefined_in:
        return metric.undefined_in[inputs.protocol]
    if inputs.n_tasks < metric.min_tasks:
        return f"T < {metric.min_tasks}"
    if metric.square and inputs.n_stages != inputs.n_tasks:
        return "not as many stages as tasks"
    absent = [need for need in _needs(name) if getattr(inputs, need) is None]
    return "; ".join(_no_input(need) for need in absent) or None


def _no_input(need: str) -> str:
    return "no numbers of test samples" if need == "n_total" else f"no reference run {need.removesuffix('_at_k')}"


def _needed_cells(name: str, inputs: Inputs) -> Iterator[tuple[str, np.ndarray]]:
    arrays = inputs.arrays()
    complete = {need: np.full(array.shape, 0.5) for need, array in arrays.items()}
    for need in _needs(name):
        absent = np.argwhere(np.isnan(arrays[need]))
        for start in range(0, len(absent), _PROBES_AT_ONCE):
            cells = absent[start : start + _PROBES_AT_ONCE]
            probes = np.full((len(cells), *arrays[need].shape), 0.5)
            probes[(np.arange(len(cells)), *cells.T)] = np.nan
            outcomes = np.isnan(_call(name, {**complete, need: probes})).reshape(len(cells), -1)
            yield from zip((_cell_name(need, cell, inputs) for cell in cells), outcomes, strict=True)


def _cell_name(need: str, cell: np.ndarray, inputs: Inputs) -> str:
    if need == "accuracy":
        return f"a[{cell[0] + inputs.first_stage},{cell[1] + 1}]"
    return f"{need}[{cell[0] + 1}]"


def _own_shape(name: str, inputs: Inputs) -> tuple[int, ...]:
    return {None: (), "k": (inputs.n_stages,), "task": (inputs.n_tasks,)}[declaration(name).index]


def _call(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(_function(name)(*(arrays[need] for need in _needs(name))))


@cache
def _function(name: str) -> Callable[..., np.ndarray]:
    return getattr(METRICS.load(name, "metrics"), name)


@cache
def _needs(name: str) -> tuple[str, ...]:
    return tuple(inspect.signature(_function(name)).parameters)
