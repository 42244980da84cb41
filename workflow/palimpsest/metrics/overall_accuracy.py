"""Share of all test samples that is classified correctly at the end of the run."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = (
    "Lomonaco et al., Avalanche: an End-to-End Library for Continual Learning, CVPR Workshops 2021 (its stream "
    "accuracy)"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), square=False, needs_boundaries=False)
ELSEWHERE = (
    Elsewhere(
        program="Avalanche",
        name="Top1_Acc_Stream",
        place="ContinualAI/avalanche, avalanche/evaluation/metrics/accuracy.py",
        ours="overall_accuracy",
        remark="over all samples of the stream that is evaluated: the same where that is the test stream of all tasks",
    ),
    Elsewhere(
        program="Continuum",
        name="accuracy",
        place="Continvvm/continuum, continuum/metrics/logger.py",
        ours="overall_accuracy",
        remark="over all samples of the last evaluation: the same where all tasks were evaluated",
    ),
)


def overall_accuracy(accuracy: np.ndarray, n_total: np.ndarray) -> np.ndarray:
    """Σ_j n_j a[T, j] / Σ_j n_j: divisor Σ_j n_j, in [0, 1]; higher is better.

    n_j is the number of test samples of task j: every sample weighs the same.

    >>> round(float(overall_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([100, 300]))), 3)
    0.775
    """
    return (accuracy[..., -1, :] * n_total).sum(axis=-1) / n_total.sum(axis=-1)
