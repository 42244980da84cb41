"""Area under the learning curve where not every mini-batch was probed."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Chaudhry et al., Efficient Lifelong Learning with A-GEM, ICLR 2019 (learning curve area), the "
    "integral by the trapezoidal rule"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), label="learning curve area up to β (trapezoidal rule)", index="b")


def learning_curve_area_trapezoid(after_batches: np.ndarray, batches: np.ndarray) -> np.ndarray:
    """1/β Σ_i (b_{i+1} − b_i) (Z_{b_i} + Z_{b_{i+1}})/2 over the grid up to β: divisor β, in [0, 1]; higher is better.

    β runs over the numbers of mini-batches b_i that were probed; at β = 0 the value is Z_0, the limit. On a grid
    without gaps it differs from `learning_curve_area`, which weighs both ends in full.

    Returns:
        `[..., b]`.

    >>> learning_curve_area_trapezoid(np.array([[0.2, 0.6, 0.8]]), np.array([0, 1, 3])).round(3).tolist()
    [0.2, 0.4, 0.6]
    """
    shots = after_batches.mean(axis=-2)
    areas = np.cumsum(np.diff(batches) * (shots[..., :-1] + shots[..., 1:]) / 2, axis=-1)
    return np.concatenate([shots[..., :1], areas / batches[1:]], axis=-1)
