"""What later tasks did to the accuracy on earlier ones."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = "Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, eq. 3"
METRIC = Metric(direction="higher", range=(-1.0, 1.0), min_tasks=2)
ELSEWHERE = (
    Elsewhere(
        program="GEM",
        name="Backward",
        place="facebookresearch/GradientEpisodicMemory, metrics/metrics.py",
        ours="backward_transfer",
        factor="(T-1)/T",
        remark="the mean includes task T, whose difference is 0 by construction",
    ),
    Elsewhere(
        program="Avalanche",
        name="StreamBWT",
        place="ContinualAI/avalanche, avalanche/evaluation/metrics/forgetting_bwt.py",
        ours="backward_transfer",
    ),
    Elsewhere(
        program="Mammoth",
        name="backward_transfer",
        place="aimagelab/mammoth, utils/metrics.py",
        ours="backward_transfer",
        remark="in percentage points",
    ),
    Elsewhere(
        program="Continuum",
        name="backward_transfer",
        place="Continvvm/continuum, continuum/metrics/metrics.py",
        remark=(
            "sums a[i, j] − a[j, j] over all stages i and over j ≤ i − 2, so that the task just before is left out, "
            "with the divisor T (T − 1)/2 of the full sum"
        ),
    ),
    Elsewhere(
        program="Continuum",
        name="remembering",
        place="Continvvm/continuum, continuum/metrics/metrics.py",
        remark="max(0, its backward_transfer): Díaz-Rodríguez et al. 2018 call that positive backward transfer",
    ),
    Elsewhere(
        program="Continuum",
        name="positive_backward_transfer",
        place="Continvvm/continuum, continuum/metrics/metrics.py",
        remark="1 − |min(0, its backward_transfer)|: Díaz-Rodríguez et al. 2018 call that remembering",
    ),
    Elsewhere(
        program="CLEAR",
        name="backward_transfer",
        place="ContinualAI/avalanche, avalanche/benchmarks/classic/clear.py",
        ours="clear_backward",
        remark="an accuracy, no difference from the diagonal",
    ),
    Elsewhere(
        program="van de Ven",
        name="BWT",
        place=(
            "GMvandeVen/continual-learning, main.py of the versions with --metrics, read in copies of that repository"
        ),
        ours="backward_transfer",
        remark=(
            "class-incremental runs score a[k, j] among the classes up to task j, so that later classes are no "
            "candidates"
        ),
    ),
)


def backward_transfer(accuracy: np.ndarray) -> np.ndarray:
    """mean_{i<T} (a[T, i] − a[i, i]): divisor T − 1, in [−1, 1]; higher is better.

    A negative value means that tasks were forgotten.

    >>> round(float(backward_transfer(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    -0.2
    """
    learned = accuracy.diagonal(axis1=-2, axis2=-1)
    return (accuracy[..., -1, :-1] - learned[..., :-1]).mean(axis=-1)
