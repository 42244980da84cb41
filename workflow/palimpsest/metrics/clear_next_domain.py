"""CLEAR next-domain accuracy: the task that comes next, the first superdiagonal."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = (
    "Lin et al., The CLEAR Benchmark: Continual LEArning on Real-World Imagery, NeurIPS 2021 Datasets and Benchmarks"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="CLEAR next-domain accuracy", min_tasks=2)
ELSEWHERE = (
    Elsewhere(
        program="CLEAR",
        name="next_domain",
        place="ContinualAI/avalanche, avalanche/benchmarks/classic/clear.py",
        ours="clear_next_domain",
    ),
)


def clear_next_domain(accuracy: np.ndarray) -> np.ndarray:
    """Mean of a[k, j] over j = k + 1: divisor T − 1, in [0, 1]; higher is better.

    >>> round(float(clear_next_domain(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.5
    """
    return accuracy.diagonal(1, axis1=-2, axis2=-1).mean(axis=-1)
