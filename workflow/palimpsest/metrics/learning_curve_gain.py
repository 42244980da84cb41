"""What the first mini-batches of a task add to the accuracy on it, on average."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric
from palimpsest.metrics.learning_curve_area import learning_curve_area

REFERENCE = (
    "none: the learning curve area of Chaudhry et al., Efficient Lifelong Learning with A-GEM, ICLR 2019, above the "
    "accuracy before the first update"
)
METRIC = Metric(direction="higher", range=(-1.0, 1.0), label="learning curve gain up to β", index="beta")


def learning_curve_gain(after_batches: np.ndarray, batches: np.ndarray) -> np.ndarray:
    """G_β = LCA_β − Z_0 for every β: divisor β + 1, in (−1, 1), the ends not attained; higher is better.

    A method whose models are good on a new task before they see it has a large area and a small gain.

    Returns:
        `[..., β]`.

    >>> learning_curve_gain(np.array([[0.5, 0.7], [0.3, 0.6]]), np.array([0, 1])).round(3).tolist()
    [0.0, 0.125]
    """
    area = learning_curve_area(after_batches, batches)
    return area - area[..., :1]
