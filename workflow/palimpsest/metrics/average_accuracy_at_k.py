"""Average accuracy after each stage over the tasks trained until then."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = (
    "Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence, ECCV "
    "2018, average accuracy A_k"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="average accuracy after stage k", index="k")
ELSEWHERE = (
    Elsewhere(
        program="FACIL",
        name="avg_accs_tag, avg_accs_taw",
        place="mmasana/FACIL, src/main_incremental.py",
        ours="average_accuracy_at_k",
        remark="tag: class-incremental, taw: task-incremental; wavg_accs_… weigh tasks by their numbers of classes",
    ),
    Elsewhere(
        program="van de Ven",
        name="average (accuracy over contexts so far)",
        place="GMvandeVen/continual-learning, eval/evaluate.py",
        ours="average_accuracy_at_k",
        remark="during training on as many test samples of each context as acc_n says, at the end on all of them",
    ),
)


def average_accuracy_at_k(accuracy: np.ndarray) -> np.ndarray:
    """mean_{j≤k} a[k, j] for every k: divisor k, in [0, 1]; higher is better.

    Returns:
        `[..., k]`.

    >>> average_accuracy_at_k(np.array([[0.9, 0.5], [0.7, 0.8]])).round(3).tolist()
    [0.9, 0.75]
    """
    n_tasks = accuracy.shape[-1]
    trained = np.tri(n_tasks, dtype=bool)
    return np.where(trained, accuracy, 0.0).sum(axis=-1) / np.arange(1, n_tasks + 1)
