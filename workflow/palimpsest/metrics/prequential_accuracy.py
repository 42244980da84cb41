"""Accuracy over the training stream, each sample tested before it is trained on."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "Gama et al., On Evaluating Stream Learning Algorithms, Machine Learning 90 (2013) 317-346 (prequential error, "
    "without forgetting factor)"
)
METRIC = Metric(direction="higher", range=(0.0, 1.0), square=False, needs_boundaries=False)


def prequential_accuracy(stream_correct: np.ndarray, stream_total: np.ndarray) -> np.ndarray:
    """Σ_k c_k / Σ_k n_k: divisor Σ_k n_k, every sample weighs the same, in [0, 1]; higher is better.

    Of the n_k samples that stage k presents for the first time, c_k were classified correctly by the model as it was
    before the mini-batch that holds them.

    >>> round(float(prequential_accuracy(np.array([60.0, 80.0]), np.array([100.0, 300.0]))), 3)
    0.35
    """
    return stream_correct.sum(axis=-1) / stream_total.sum(axis=-1)
