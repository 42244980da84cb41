"""CLEAR in-domain accuracy: the diagonal."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric
from palimpsest.metrics.learning_accuracy import learning_accuracy

REFERENCE = (
    "Lin et al., The CLEAR Benchmark: Continual LEArning on Real-World Imagery, NeurIPS 2021 Datasets and Benchmarks"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="CLEAR in-domain accuracy")
ELSEWHERE = (
    Elsewhere(
        program="CLEAR",
        name="in_domain",
        place="ContinualAI/avalanche, avalanche/benchmarks/classic/clear.py",
        ours="clear_in_domain",
    ),
)


def clear_in_domain(accuracy: np.ndarray) -> np.ndarray:
    """Mean of a[k, j] over k = j: divisor T, in [0, 1]; higher is better.

    The same formula as `learning_accuracy`.

    >>> round(float(clear_in_domain(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.85
    """
    return learning_accuracy(accuracy)
