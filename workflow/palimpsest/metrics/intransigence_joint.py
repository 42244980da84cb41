"""Average over the run of the intransigence against joint training."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric
from palimpsest.metrics.intransigence_joint_at_k import intransigence_joint_at_k

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, intransigence measure I_k, averaged over k"
)
METRIC = Metric(direction="lower", range=(-1.0, 1.0), label="intransigence (joint)")


def intransigence_joint(accuracy: np.ndarray, joint_at_k: np.ndarray) -> np.ndarray:
    """mean_k (a*_k − a[k, k]): divisor T, in [−1, 1]; lower is better.

    a*_k is the accuracy on task k of a model trained on the union of the tasks 1…k.

    >>> round(float(intransigence_joint(np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([0.9, 0.85]))), 3)
    0.025
    """
    return intransigence_joint_at_k(accuracy, joint_at_k).mean(axis=-1)
