"""Average accuracy over all tasks at the end of the run."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 2"
METRIC = Metric(direction="higher", range=(0.0, 1.0), square=False, needs_boundaries=False)
ELSEWHERE = (
    Elsewhere(
        program="GEM",
        name="Final Accuracy",
        place="facebookresearch/GradientEpisodicMemory, metrics/metrics.py",
        ours="average_accuracy",
        remark=(
            "its a[k, j] leave the last test sample of a task unscored and count it in the divisor (main.py, "
            "eval_tasks)"
        ),
    ),
    Elsewhere(
        program="A-GEM",
        name="ACC (average_acc_stats_across_runs)",
        place="facebookresearch/agem, utils/utils.py",
        ours="average_accuracy",
        remark="in percent; the SD over runs has the divisor n, not n − 1",
    ),
)


def average_accuracy(accuracy: np.ndarray) -> np.ndarray:
    """mean_j a[T, j]: divisor T, every task weighs the same, in [0, 1]; higher is better.

    >>> round(float(average_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.75
    """
    return accuracy[..., -1, :].mean(axis=-1)
