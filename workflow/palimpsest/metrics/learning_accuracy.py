"""Average accuracy on each task right after it was trained."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Riemer et al., Learning to Learn without Forgetting by Maximizing Transfer and Minimizing Interference, ICLR 2019"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0))


def learning_accuracy(accuracy: np.ndarray) -> np.ndarray:
    """mean_j a[j, j]: divisor T, in [0, 1]; higher is better.

    >>> round(float(learning_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.85
    """
    return accuracy.diagonal(axis1=-2, axis2=-1).mean(axis=-1)
