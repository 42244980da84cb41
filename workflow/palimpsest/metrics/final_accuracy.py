"""Accuracy on each task at the end of the run."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 2, its summands"
METRIC = Metric(direction="higher", range=(0.0, 1.0), index="task", square=False, needs_boundaries=False)


def final_accuracy(accuracy: np.ndarray) -> np.ndarray:
    """a[T, j] for every task j: no divisor, in [0, 1]; higher is better.

    Returns:
        `[..., task]`.

    >>> final_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]])).tolist()
    [0.7, 0.8]
    """
    return accuracy[..., -1, :].copy()
