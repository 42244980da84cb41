"""From the best accuracy on each task at any probe to the last one."""

from __future__ import annotations

import numpy as np

from palimpsest.metrics._declaration import Metric

REFERENCE = (
    "none: the forgetting measure of Chaudhry et al., Riemannian Walk for Incremental Learning: Understanding "
    "Forgetting and Intransigence, ECCV 2018, with the maximum over all probes instead of the stage ends"
)
METRIC = Metric(
    direction="lower",
    range=(0.0, 1.0),
    label="forgetting since the peak of all probes",
    min_tasks=2,
    needs_boundaries=False,
)


def forgetting_at_peak(probe_peak: np.ndarray, probe_end: np.ndarray) -> np.ndarray:
    """mean_{j<T} (peak_j − end_j): divisor T − 1, in [0, 1]; lower is better.

    peak_j is the highest accuracy on task j at any probe or stage end, end_j the one at the end of the run, both on
    the samples of the probes. A maximum of noisy values is biased upward, the more the more probes there are: values
    of runs with other numbers of probes do not compare.

    >>> round(float(forgetting_at_peak(np.array([0.9, 0.8]), np.array([0.6, 0.8]))), 3)
    0.3
    """
    return (probe_peak - probe_end)[..., :-1].mean(axis=-1)
