"""From the best earlier accuracy on each task to the last one, all earlier stages counted."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, forgetting measure F_k at k = T"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), min_tasks=2)
ELSEWHERE = (
    Elsewhere(
        program="RWalk",
        name="F_k",
        place="Chaudhry et al., ECCV 2018, the paper",
        ours="forgetting",
        remark="at k = T; the maximum runs over all earlier stages",
    ),
    Elsewhere(
        program="A-GEM",
        name="compute_fgt",
        place="facebookresearch/agem, utils/utils.py",
        ours="forgetting",
    ),
    Elsewhere(
        program="van de Ven",
        name="F",
        place=(
            "GMvandeVen/continual-learning, main.py of the versions with --metrics, read in copies of that repository"
        ),
        ours="forgetting",
        remark=(
            "class-incremental runs score a[k, j] among the classes up to task j, so that later classes are no "
            "candidates"
        ),
    ),
    Elsewhere(
        program="Avalanche",
        name="StreamForgetting",
        place="ContinualAI/avalanche, avalanche/evaluation/metrics/forgetting_bwt.py",
        ours="backward_transfer",
        factor="-1",
        remark="from the accuracy right after the task, not from the maximum",
    ),
    Elsewhere(
        program="Mammoth",
        name="forgetting",
        place="aimagelab/mammoth, utils/metrics.py",
        ours="forgetting_clipped",
        remark=(
            "the maximum includes the last stage, so that no task counts below 0; where a[j − 1, j] is measured for "
            "forward transfer, it is part of the maximum and the values differ"
        ),
    ),
    Elsewhere(
        program="FACIL",
        name="forg_tag, forg_taw (last row)",
        place="mmasana/FACIL, src/main_incremental.py and src/utils.py",
        ours="forgetting_since_learned",
        remark="later tasks are not evaluated and stand as 0 in the maximum",
    ),
    Elsewhere(
        program="Continuum",
        name="forgetting",
        place="Continvvm/continuum, continuum/metrics/metrics.py",
        remark=(
            "leaves out task T − 1, and stage T − 1 from the maximum, with the divisor T − 1; earlier versions took "
            "all of them"
        ),
    ),
)


def forgetting(accuracy: np.ndarray) -> np.ndarray:
    """mean_{j<T} (max_{l<T} a[l, j] − a[T, j]): divisor T − 1, signed, in [−1, 1]; lower is better.

    The maximum runs over all earlier rows, those before task j was trained included.

    >>> round(float(forgetting(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.2
    """
    return (accuracy[..., :-1, :-1].max(axis=-2) - accuracy[..., -1, :-1]).mean(axis=-1)
