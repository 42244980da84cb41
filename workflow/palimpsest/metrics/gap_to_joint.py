"""What training on all tasks at once does better than the sequence."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "none: the distance from joint training, the upper target in van de Ven et al., Three types of incremental "
    "learning, Nature Machine Intelligence 4 (2022) 1185-1197"
)
METRIC = Metric(
    direction="lower", range=(-1.0, 1.0), label="gap to joint training", square=False, needs_boundaries=False
)


def gap_to_joint(accuracy: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """mean_j a*_j − mean_j a[T, j]: divisor T, in [−1, 1]; lower is better.

    a*_j is the accuracy on task j of a model trained on the union of all tasks.

    >>> round(float(gap_to_joint(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([0.9, 0.8]))), 3)
    0.1
    """
    return joint.mean(axis=-1) - accuracy[..., -1, :].mean(axis=-1)
