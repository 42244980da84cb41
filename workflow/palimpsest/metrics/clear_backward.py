"""CLEAR backward transfer: earlier tasks, below the diagonal."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Lin et al., The CLEAR Benchmark: Continual LEArning on Real-World Imagery, NeurIPS 2021 Datasets and Benchmarks"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="CLEAR backward transfer", min_tasks=2)


def clear_backward(accuracy: np.ndarray) -> np.ndarray:
    """Mean of a[k, j] over k > j: divisor T (T − 1) / 2, in [0, 1]; higher is better.

    >>> round(float(clear_backward(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.7
    """
    stage, task = np.tril_indices(accuracy.shape[-1], -1)
    return accuracy[..., stage, task].mean(axis=-1)
