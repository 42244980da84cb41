"""From the best accuracy on each task since it was trained to the last one."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric
from palimpsest.metrics._drop_since_learned import drop_since_learned

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, with the maximum over the stages from j on: the variant of programs that do not measure a[k, j] for k < j"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), min_tasks=2)


def forgetting_since_learned(accuracy: np.ndarray) -> np.ndarray:
    """mean_{j<T} (max_{j≤l<T} a[l, j] − a[T, j]): divisor T − 1, signed, in [−1, 1]; lower is better.

    >>> round(float(forgetting_since_learned(np.array([[0.7, 0.5], [0.8, 0.8]]))), 3)
    -0.1
    """
    return drop_since_learned(accuracy).mean(axis=-1)
