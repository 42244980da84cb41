"""What a model trained on all tasks so far at once does better on the newest task."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, intransigence measure I_k"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), label="intransigence (joint) at stage k", index="k")
ELSEWHERE = (
    Elsewhere(
        program="RWalk",
        name="I_k",
        place="Chaudhry et al., ECCV 2018, the paper",
        ours="intransigence_joint_at_k",
    ),
)


def intransigence_joint_at_k(accuracy: np.ndarray, joint_at_k: np.ndarray) -> np.ndarray:
    """a*_k − a[k, k] for every k: no divisor, in [−1, 1]; lower is better.

    a*_k is the accuracy on task k of a model trained on the union of the tasks 1…k.

    Returns:
        `[..., k]`.

    >>> matrix = np.array([[0.9, 0.5], [0.7, 0.8]])
    >>> intransigence_joint_at_k(matrix, np.array([0.9, 0.85])).round(3).tolist()
    [0.0, 0.05]
    """
    return joint_at_k - accuracy.diagonal(axis1=-2, axis2=-1)
