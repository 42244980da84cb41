"""Wilcoxon signed-rank test by all sign flips: exact with ties and zeros."""

from __future__ import annotations

import numpy as np

from palimpsest.statistics.plan import Alternative

COUNTED_UP_TO = 500


def wilcoxon_p(differences: np.ndarray, alternative: Alternative = "two-sided") -> float:
    """p of the signed-rank statistic T = Σ sign(d) · rank |d| among all flips of the signs.

    Ranks are midranks over all differences, zeros included; a zero has a rank and no sign (Pratt 1959). The
    distribution of T is counted exactly, by adding one rank after the other, and p is two-sided as
    P(|T*| ≥ |T|), so it needs no doubling. No difference at all gives 1. Counting takes time in proportion to the third
    power of the number of differences: above 500 the normal distribution with the variance Σ rank² takes its place,
    which there differs by less than 0.001.

    Reference: Pratt, Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures, JASA 1959.

    >>> wilcoxon_p(np.array([2.0, 5.0, -1.0, 4.0, 0.0]))
    0.25
    """
    from scipy.stats import rankdata

    # Twice a midrank is a whole number: sums of ranks can be counted in an array.
    ranks = (2 * rankdata(np.abs(differences))).astype(int)
    signs = np.sign(differences)
    observed = int((signs * ranks).sum())
    if np.count_nonzero(signs) > COUNTED_UP_TO:
        return _normal_p(observed, ranks[signs != 0], alternative)
    share = np.ones(1)
    for rank in ranks[signs != 0]:
        # share[s]: of all flips so far, those whose positive ranks sum to s.
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    statistic = 2 * np.arange(len(share)) - (len(share) - 1)
    at_least = {
        "two-sided": np.abs(statistic) >= abs(observed),
        "greater": statistic >= observed,
        "less": statistic <= observed,
    }
    return float(share[at_least[alternative]].sum())


def _normal_p(observed: int, ranks: np.ndarray, alternative: Alternative) -> float:
    from scipy.special import ndtr

    z = observed / np.sqrt(np.square(ranks.astype(float)).sum())
    return float({"two-sided": 2 * ndtr(-abs(z)), "greater": ndtr(-z), "less": ndtr(z)}[alternative])
