"""Average over the run of the accuracy on the tasks trained so far."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric
from palimpsest.metrics.average_accuracy_at_k import average_accuracy_at_k

REFERENCE = (
    "Rebuffi et al., iCaRL: Incremental Classifier and Representation Learning, CVPR 2017 (there over "
    "classes, which is the same for tasks of equal size)"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0))
ELSEWHERE = (
    Elsewhere(
        program="Continuum",
        name="average_incremental_accuracy",
        place="Continvvm/continuum, continuum/metrics/logger.py",
        ours="average_incremental_accuracy",
        remark="the same for tasks with equally many test samples; otherwise larger tasks weigh more within a stage",
    ),
    Elsewhere(
        program="Continuum",
        name="accuracy_A",
        place="Continvvm/continuum, continuum/metrics/metrics.py",
        remark=(
            "mean of the cells on and below the diagonal, divisor T (T + 1)/2: late stages weigh more, ours weighs "
            "every stage alike"
        ),
    ),
    Elsewhere(
        program="CLEAR",
        name="accuracy",
        place="ContinualAI/avalanche, avalanche/benchmarks/classic/clear.py",
        remark=(
            "mean of the cells on and below the diagonal, divisor T (T + 1)/2: late stages weigh more, ours weighs "
            "every stage alike"
        ),
    ),
)


def average_incremental_accuracy(accuracy: np.ndarray) -> np.ndarray:
    """mean_k mean_{j≤k} a[k, j]: divisor T over the stages, k within stage k, in [0, 1]; higher is better.

    >>> round(float(average_incremental_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.825
    """
    return average_accuracy_at_k(accuracy).mean(axis=-1)
