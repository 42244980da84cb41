"""Area under the curve of the accuracy on the newest task over its first mini-batches."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Elsewhere, Metric, without_gaps

REFERENCE = "Chaudhry et al., Efficient Lifelong Learning with A-GEM, ICLR 2019 (learning curve area LCA)"
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="learning curve area up to β", index="beta")
ELSEWHERE = (
    Elsewhere(
        program="A-GEM",
        name="LCA_β",
        place="Chaudhry et al., ICLR 2019, the paper",
        ours="learning_curve_area",
        remark="written as an integral over [0, β] with the divisor β + 1, and as this sum",
    ),
)


def learning_curve_area(after_batches: np.ndarray, batches: np.ndarray) -> np.ndarray:
    """LCA_β = 1/(β + 1) Σ_{b=0}^{β} Z_b for every β: divisor β + 1, in [0, 1]; higher is better.

    Z_b is the mean over the tasks of the accuracy on a task after b of its mini-batches. β runs as far as every b was
    probed; on a grid with gaps `learning_curve_area_trapezoid` goes on.

    Returns:
        `[..., β]`.

    >>> learning_curve_area(np.array([[0.5, 0.7], [0.3, 0.6]]), np.array([0, 1])).round(3).tolist()
    [0.4, 0.525]
    """
    shots = after_batches.mean(axis=-2)[..., : without_gaps(batches)]
    return shots.cumsum(axis=-1) / np.arange(1, shots.shape[-1] + 1)
