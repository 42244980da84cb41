"""What earlier tasks did to a task before it was trained, against an untrained model."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 4"
METRIC = Metric(
    direction="higher",
    range=(-1.0, 1.0),
    label="forward transfer (untrained model)",
    min_tasks=2,
    undefined_in={"class_incremental": "equals −b̄ by construction"},
)


def forward_transfer_random_init(accuracy: np.ndarray, random_init: np.ndarray) -> np.ndarray:
    """mean_{i≥2} (a[i−1, i] − b_i): divisor T − 1, in [−1, 1]; higher is better.

    b_i is the accuracy of the untrained model on task i.

    Undefined in class-incremental studies: a model that never saw the classes of task i scores 0 on it, so the value
    would be −b̄ whatever was learned.

    >>> round(float(forward_transfer_random_init(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([0.4, 0.4]))), 3)
    0.1
    """
    return (accuracy.diagonal(1, axis1=-2, axis2=-1) - random_init[..., 1:]).mean(axis=-1)
