"""Average over the run of the accuracy on the tasks trained so far."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric
from palimpsest.metrics.average_accuracy_at_k import average_accuracy_at_k

REFERENCE = (
    "Rebuffi et al., iCaRL: Incremental Classifier and Representation Learning, CVPR 2017 (there over "
    "classes, which is the same for tasks of equal size)"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0))


def average_incremental_accuracy(accuracy: np.ndarray) -> np.ndarray:
    """mean_k mean_{j≤k} a[k, j]: divisor T over the stages, k within stage k, in [0, 1]; higher is better.

    >>> round(float(average_incremental_accuracy(np.array([[0.9, 0.5], [0.7, 0.8]]))), 3)
    0.825
    """
    return average_accuracy_at_k(accuracy).mean(axis=-1)
