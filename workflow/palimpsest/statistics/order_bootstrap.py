"""Bootstrap of the worst quantile of a task's final accuracy, seeds resampled within orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WORST_QUANTILE = 0.05
N_RESAMPLES = 1999
# Share of 2,000 simulated studies whose 95 % interval covers the quantile of these orders, by the number of runs, where
# seeds within an order vary as much as orders do; tests/simulation compares.
QUANTILE_COVERAGE = {5: 0.217, 10: 0.389, 25: 0.732, 100: 0.891}


def worst_quantile_interval(
    values: np.ndarray, orders: Sequence[object], alpha: float, rng: np.random.Generator, n_resamples: int = N_RESAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile interval of the 5 % quantile over the last axis, axes before it being studies.

    Each resample draws, with replacement, as many runs of each order as the order has. The orders stay as they are:
    the statement is about these orders, and the spread between other ones is not in it. A resample holds no value
    below the worst one observed, so the interval is too short, all the more with few runs.

    Args:
        values: one per run, finite.
        orders: the order of each run.
        alpha: the interval is at 1 − alpha.
        rng: a named stream.
    """
    quantiles = np.empty((n_resamples, *values.shape[:-1]))
    members = [np.flatnonzero([order == this for order in orders]) for this in sorted(set(orders))]  # type: ignore[type-var]
    for number in range(n_resamples):
        drawn = np.concatenate([at[rng.integers(len(at), size=len(at))] for at in members])
        quantiles[number] = _quantile(values[..., drawn])
    low, high = np.quantile(quantiles, (alpha / 2, 1 - alpha / 2), axis=0)
    return low, high


def _quantile(values: np.ndarray) -> np.ndarray:
    """The quantile by linear interpolation, as `numpy.quantile` defines it, without its overhead."""
    place = WORST_QUANTILE * (values.shape[-1] - 1)
    below = int(place)
    above = min(below + 1, values.shape[-1] - 1)
    ordered = np.partition(values, [below, above], axis=-1)
    return ordered[..., below] + (place - below) * (ordered[..., above] - ordered[..., below])
