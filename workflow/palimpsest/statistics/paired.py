"""The paired t test, with pairs that share a seed or an order, and the test of equivalence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.statistics.plan import Alternative

# Fractions of whole samples differ by more than this, or not at all: what is smaller is rounding.
NO_DIFFERENCE = 1e-12


@dataclass(frozen=True)
class PairedTest:
    """What a paired t test found; None where it is undefined, with the reason.

    Args:
        n: number of pairs.
        mean: mean of the differences.
        sd: their sample SD (divisor n − 1).
        standard_error: of the mean, SD/√n of the values tested: the pairs or the means of their clusters.
        t, df, p: of the test against 0.
        ci_low, ci_high: interval of the mean at 1 − α; one side is None for a one-sided alternative.
        p_equivalence: the larger p of the two one-sided tests against −δ and δ; None without δ.
        clustered_by: None where pairs are independent, else `order` or `seed`, whichever interval is wider.
        reason: why p is None.
    """

    n: int
    mean: float | None = None
    sd: float | None = None
    standard_error: float | None = None
    t: float | None = None
    df: int | None = None
    p: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_equivalence: float | None = None
    clustered_by: str | None = None
    reason: str | None = None


def paired_t(
    differences: np.ndarray,
    alternative: Alternative,
    alpha: float,
    margin: float | None = None,
    clusters: Mapping[str, Sequence[object]] | None = None,
) -> PairedTest:
    """Student's paired t test of differences, and two one-sided tests against a margin.

    Pairs that share an order or a seed are not independent. Where a factor of `clusters` has several levels and
    several pairs on one of them, the means over its levels are tested, with one degree of freedom less than there are
    levels; of several such factors the one with the wider interval counts. A factor with one level is a condition of
    the whole statement and not a cluster. On an incomplete grid `mean` is that of all pairs, while the test is about
    the mean of the cluster means.

    Args:
        differences: one per pair, finite.
        alternative: of the mean against 0.
        alpha: the interval covers 1 − alpha.
        margin: δ of the test of equivalence.
        clusters: the level of each factor (`order`, `seed`) at each pair.

    Reference: Student, The Probable Error of a Mean, Biometrika 1908; Schuirmann, A Comparison of the Two One-Sided
    Tests Procedure and the Power Approach for Assessing the Equivalence of Average Bioavailability, Journal of
    Pharmacokinetics and Biopharmaceutics 1987.
    """
    n = len(differences)
    if n < 2:
        mean = float(differences.mean()) if n else None
        return PairedTest(n, mean, reason="fewer than two pairs")
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    clustered_by, sample = _independent(differences, clusters or {}, alpha)
    if sample.std(ddof=1) < NO_DIFFERENCE:
        reason = "the differences do not vary"
        return PairedTest(n, mean, 0.0 if sd < NO_DIFFERENCE else sd, clustered_by=clustered_by, reason=reason)
    from scipy.stats import ttest_1samp

    test = ttest_1samp(sample, 0.0, alternative=alternative)
    interval = test.confidence_interval(1 - alpha)
    return PairedTest(
        n,
        mean,
        sd,
        standard_error=_standard_error(sample),
        t=float(test.statistic),
        df=len(sample) - 1,
        p=float(test.pvalue),
        ci_low=_finite(interval.low),
        ci_high=_finite(interval.high),
        p_equivalence=None if margin is None else _equivalence_p(sample, margin),
        clustered_by=clustered_by,
    )


def _independent(
    differences: np.ndarray, clusters: Mapping[str, Sequence[object]], alpha: float
) -> tuple[str | None, np.ndarray]:
    """The values that may be tested as independent, and what they are means over."""
    candidates: list[tuple[str | None, np.ndarray]] = []
    for factor, levels in sorted(clusters.items()):
        distinct = sorted(set(levels))
        if 1 < len(distinct) < len(levels):
            at = np.array([distinct.index(level) for level in levels])
            candidates.append((factor, np.bincount(at, differences) / np.bincount(at)))
    return max(candidates, key=lambda candidate: _half_width(candidate[1], alpha), default=(None, differences))


def _half_width(sample: np.ndarray, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(len(sample) - 1, 1 - alpha / 2)) * _standard_error(sample)


def _standard_error(sample: np.ndarray) -> float:
    return float(sample.std(ddof=1) / np.sqrt(len(sample)))


def _equivalence_p(sample: np.ndarray, margin: float) -> float:
    from scipy.stats import ttest_1samp

    above = ttest_1samp(sample, -margin, alternative="greater").pvalue
    below = ttest_1samp(sample, margin, alternative="less").pvalue
    return float(max(above, below))


def _finite(bound: float) -> float | None:
    return float(bound) if np.isfinite(bound) else None
