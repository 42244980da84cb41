"""Average accuracy after each stage over the tasks trained until then."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, average accuracy A_k"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="average accuracy after stage k", index="k")


def average_accuracy_at_k(accuracy: np.ndarray) -> np.ndarray:
    """mean_{j≤k} a[k, j] for every k: divisor k, in [0, 1]; higher is better.

    Returns:
        `[..., k]`.

    >>> average_accuracy_at_k(np.array([[0.9, 0.5], [0.7, 0.8]])).round(3).tolist()
    [0.9, 0.75]
    """
    n_tasks = accuracy.shape[-1]
    trained = np.tri(n_tasks, dtype=bool)
    return np.where(trained, accuracy, 0.0).sum(axis=-1) / np.arange(1, n_tasks + 1)
