"""The largest loss on one task between its own training and the end of the run."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "none: the largest of the summands of backward transfer (Lopez-Paz and Ranzato, NeurIPS 2017, eq. 3) with the "
    "sign turned"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), min_tasks=2)


def worst_task_drop(accuracy: np.ndarray) -> np.ndarray:
    """max_{j<T} (a[j, j] − a[T, j]): no divisor, in [−1, 1]; lower is better.

    >>> round(float(worst_task_drop(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.2
    """
    learned = accuracy.diagonal(axis1=-2, axis2=-1)
    return (learned[..., :-1] - accuracy[..., -1, :-1]).max(axis=-1)
