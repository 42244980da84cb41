"""What earlier tasks did to the learning of a task, against a model trained on it alone."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Wang et al., A Comprehensive Survey of Continual Learning: Theory, Method and Application, TPAMI 2024, its FWT"
)
METRIC = Metric(direction="higher", range=(-1.0, 1.0), label="forward transfer (isolated)", min_tasks=2)


def forward_transfer_isolated(accuracy: np.ndarray, isolated: np.ndarray) -> np.ndarray:
    """mean_{i≥2} (a[i, i] − b_i): divisor T − 1, in [−1, 1]; higher is better.

    b_i is the accuracy on task i after training on it alone, with fresh weights.

    >>> round(float(forward_transfer_isolated(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([0.9, 0.75]))), 3)
    0.05
    """
    return (accuracy.diagonal(axis1=-2, axis2=-1) - isolated)[..., 1:].mean(axis=-1)
