"""Final accuracy between an untrained model and joint training."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "none: the normalised score of Mnih et al., Human-level control through deep reinforcement learning, Nature 518 "
    "(2015) 529-533, with the untrained model in the place of random play and joint training in that of the human"
)
FLOOR = 0.05
METRIC = Metric(
    direction="higher",
    range=(1 - 1 / FLOOR, 1 / FLOOR),
    label="accuracy between untrained (0) and joint (1)",
    square=False,
    undefined_where=f"joint − random_init is below {FLOOR} on a task",
    unit="ratio",
    needs_boundaries=False,
)


def normalized_accuracy(accuracy: np.ndarray, random_init: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """mean_j (a[T, j] − b_j)/(u_j − b_j): divisor T, a ratio in [−19, 20]; higher is better.

    b_j is the accuracy on task j of the untrained model, u_j that of a model trained on the union of all tasks: 0 is
    as good as untrained, 1 as good as joint training. Undefined where u_j − b_j is below 0.05 for some task, since
    noise of the references would decide the value.

    >>> matrix = np.array([[0.9, 0.5], [0.7, 0.8]])
    >>> round(float(normalized_accuracy(matrix, np.array([0.5, 0.5]), np.array([0.9, 0.9]))), 3)
    0.625
    """
    span = joint - random_init
    # A difference of fractions that were written as 0.05 apart must not fall below the floor by rounding.
    usable = span >= FLOOR - 1e-12
    scores = (accuracy[..., -1, :] - random_init) / np.where(usable | np.isnan(span), span, np.nan)
    return scores.mean(axis=-1)
