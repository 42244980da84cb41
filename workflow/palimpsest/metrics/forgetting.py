"""From the best earlier accuracy on each task to the last one, all earlier stages counted."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, forgetting measure F_k at k = T"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), min_tasks=2)


def forgetting(accuracy: np.ndarray) -> np.ndarray:
    """mean_{j<T} (max_{l<T} a[l, j] − a[T, j]): divisor T − 1, signed, in [−1, 1]; lower is better.

    The maximum runs over all earlier rows, those before task j was trained included.

    >>> round(float(forgetting(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.2
    """
    return (accuracy[..., :-1, :-1].max(axis=-2) - accuracy[..., -1, :-1]).mean(axis=-1)
