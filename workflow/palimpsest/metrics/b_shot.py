"""Average accuracy on the newest task after its first mini-batches."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric

REFERENCE = "Chaudhry et al., Efficient Lifelong Learning with A-GEM, ICLR 2019 (b-shot performance Z_b)"
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="b-shot accuracy", index="b")
ELSEWHERE = (
    Elsewhere(
        program="A-GEM",
        name="Z_b",
        place="Chaudhry et al., ICLR 2019, the paper",
        ours="b_shot",
    ),
)


def b_shot(after_batches: np.ndarray) -> np.ndarray:
    """Z_b = mean_k a[k after b mini-batches, k] for every b probed: divisor T, in [0, 1]; higher is better.

    Z_0 is the accuracy before the first update of a task, after its output units were added. Null at every b that one
    of the tasks does not reach.

    Returns:
        `[..., b]`.

    >>> b_shot(np.array([[0.5, 0.7], [0.3, 0.6]])).round(3).tolist()
    [0.4, 0.65]
    """
    return after_batches.mean(axis=-2)
