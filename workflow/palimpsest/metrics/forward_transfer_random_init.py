"""What earlier tasks did to a task before it was trained, against an untrained model."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 4"
METRIC = Metric(
    direction="higher",
    range=(-1.0, 1.0),
    label="forward transfer (untrained model)",
    min_tasks=2,
    undefined_in={"class_incremental": "equals −b̄ by construction"},
)
ELSEWHERE = (
    Elsewhere(
        program="GEM",
        name="Forward",
        place="facebookresearch/GradientEpisodicMemory, metrics/metrics.py",
        ours="forward_transfer_random_init",
        factor="(T-1)/T",
        remark="the mean includes task 1 as 0; b is the first evaluation, before the first mini-batch",
    ),
    Elsewhere(
        program="Avalanche",
        name="StreamForwardTransfer",
        place="ContinualAI/avalanche, avalanche/evaluation/metrics/forward_transfer.py",
        ours="forward_transfer_random_init",
        remark="where the first evaluation comes before training (eval_every > −1); otherwise b is a trained model",
    ),
    Elsewhere(
        program="Mammoth",
        name="forward_transfer",
        place="aimagelab/mammoth, utils/metrics.py",
        ours="forward_transfer_random_init",
        remark=(
            "in percentage points; given in class-incremental runs too, where it carries no information; a[i − 1, i] "
            "is measured after the method began task i"
        ),
    ),
    Elsewhere(
        program="Continuum",
        name="forward_transfer",
        place="Continvvm/continuum, continuum/metrics/metrics.py",
        ours="clear_backward",
        remark="the mean of the cells below the diagonal: tasks that were trained before, not after",
    ),
    Elsewhere(
        program="CLEAR",
        name="forward_transfer",
        place="ContinualAI/avalanche, avalanche/benchmarks/classic/clear.py",
        ours="clear_forward",
        remark="an accuracy, without the untrained model",
    ),
    Elsewhere(
        program="van de Ven",
        name="FWT",
        place=(
            "GMvandeVen/continual-learning, main.py of the versions with --metrics, read in copies of that repository"
        ),
        ours="forward_transfer_random_init",
        remark=(
            "class-incremental runs score a[k, j] among the classes up to task j, so that later classes are no "
            "candidates; the untrained model is scored among those of task j alone; set to 0 where exemplars classify"
        ),
    ),
)


def forward_transfer_random_init(accuracy: np.ndarray, random_init: np.ndarray) -> np.ndarray:
    """mean_{i≥2} (a[i−1, i] − b_i): divisor T − 1, in [−1, 1]; higher is better.

    b_i is the accuracy of the untrained model on task i.

    Undefined in class-incremental studies: a model that never saw the classes of task i scores 0 on it, so the value
    would be −b̄ whatever was learned.

    >>> round(float(forward_transfer_random_init(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([0.4, 0.4]))), 3)
    0.1
    """
    return (accuracy.diagonal(1, axis1=-2, axis2=-1) - random_init[..., 1:]).mean(axis=-1)
