"""Forgetting since a task was trained, tasks that improved counted as 0."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric
from palimpsest.metrics._drop_since_learned import drop_since_learned

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, with the maximum over the stages from j on and negative values set to 0"
)
METRIC = Metric(direction="lower", range=(0.0, 1.0), label="forgetting since learned, clipped at 0", min_tasks=2)


def forgetting_clipped(accuracy: np.ndarray) -> np.ndarray:
    """mean_{j<T} max(0, max_{j≤l<T} a[l, j] − a[T, j]): divisor T − 1, in [0, 1]; lower is better.

    >>> round(float(forgetting_clipped(np.array([[0.7, 0.5], [0.8, 0.8]]))), 3)
    0.0
    """
    return np.maximum(drop_since_learned(accuracy), 0.0).mean(axis=-1)
