"""What models trained on one task alone do better on it."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, intransigence, with a model trained on the task alone as the reference"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), label="intransigence (isolated)")


def intransigence_isolated(accuracy: np.ndarray, isolated: np.ndarray) -> np.ndarray:
    """mean_j (b_j − a[j, j]): divisor T, b_j = accuracy after training on task j alone, in [−1, 1]; lower is better.

    In class-incremental studies it can be negative without any plasticity: an isolated model and one that favours the
    newest classes solve a smaller problem.

    >>> round(float(intransigence_isolated(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([0.9, 0.85]))), 3)
    0.025
    """
    return (isolated - accuracy.diagonal(axis1=-2, axis2=-1)).mean(axis=-1)
