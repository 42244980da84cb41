"""What later tasks did to the accuracy on earlier ones."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 3"
METRIC = Metric(direction="higher", range=(-1.0, 1.0), min_tasks=2)


def backward_transfer(accuracy: np.ndarray) -> np.ndarray:
    """mean_{i<T} (a[T, i] − a[i, i]): divisor T − 1, in [−1, 1]; higher is better.

    A negative value means that tasks were forgotten.

    >>> round(float(backward_transfer(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    -0.2
    """
    learned = accuracy.diagonal(axis1=-2, axis2=-1)
    return (accuracy[..., -1, :-1] - learned[..., :-1]).mean(axis=-1)
