"""Average accuracy over all tasks at the end of the run."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 2"
METRIC = Metric(direction="higher", range=(0.0, 1.0), square=False)


def average_accuracy(accuracy: np.ndarray) -> np.ndarray:
    """mean_j a[T, j]: divisor T, every task weighs the same, in [0, 1]; higher is better.

    >>> round(float(average_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.75
    """
    return accuracy[..., -1, :].mean(axis=-1)
