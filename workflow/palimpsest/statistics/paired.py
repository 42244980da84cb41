"""The paired t test, with pairs that share a seed or an order, and the test of equivalence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.aggregate.means import NO_DIFFERENCE, estimates, pick, widest
from palimpsest.statistics.plan import Alternative

# Share of 2,000 simulated studies whose 95 % interval covers, by pairs, where the differences are exponential instead
# of normal; tests/simulation compares.
SKEWED_COVERAGE = {5: 0.880, 10: 0.895, 25: 0.925}


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
        clustered_by: None where pairs are independent, else `order`, `seed` or `order and seed`, whichever interval
            is widest.
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

    Pairs that share an order or a seed are not independent: of the estimates in `means.estimates`, by order, by seed
    and by both, the one with the widest interval counts. On an incomplete grid `mean` is that of all pairs, while a
    test by one factor is about the mean of its cluster means.

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
    tested = t_tests(differences, alternative, alpha, margin, clusters)
    by = None if tested.by is None else str(tested.by)
    if tested.spread < NO_DIFFERENCE:
        reason = "the differences do not vary"
        return PairedTest(n, mean, 0.0 if sd < NO_DIFFERENCE else sd, clustered_by=by, reason=reason)
    return PairedTest(
        n,
        mean,
        sd,
        standard_error=float(tested.standard_error),
        t=float(tested.t),
        df=int(tested.df),
        p=float(tested.p),
        ci_low=_finite(tested.ci_low),
        ci_high=_finite(tested.ci_high),
        p_equivalence=None if margin is None else float(tested.p_equivalence),
        clustered_by=by,
    )


@dataclass(frozen=True)
class Tested:
    """The tests of many studies of one design; arrays over studies.

    Args:
        by: what the standard error allows for (`means.Estimate`).
        spread: SD of the values tested; 0 where they do not vary.
        standard_error, t, df, p, ci_low, ci_high, p_equivalence: as in `PairedTest`, infinite where a side is open.
    """

    by: Any
    spread: np.ndarray
    standard_error: np.ndarray
    t: np.ndarray
    df: np.ndarray
    p: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    p_equivalence: np.ndarray


def t_tests(
    differences: np.ndarray,
    alternative: Alternative,
    alpha: float,
    margin: float | None = None,
    clusters: Mapping[str, Sequence[object]] | None = None,
) -> Tested:
    """The tests of `paired_t` on the last axis; axes before it are studies. At least two pairs."""
    from scipy.special import stdtr, stdtrit

    candidates = estimates(differences, clusters or {})
    chosen = widest(candidates, alpha)
    mean, error, df = pick(candidates, chosen)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, above, below = (shifted / error for shifted in (mean, mean + (margin or 0), mean - (margin or 0)))
    p = {"two-sided": 2 * stdtr(df, -abs(t)), "greater": stdtr(df, -t), "less": stdtr(df, t)}[alternative]
    width = stdtrit(df, 1 - alpha / (2 if alternative == "two-sided" else 1)) * error
    names = np.array([candidate.by for candidate in candidates], dtype=object)
    return Tested(
        names[chosen],
        error * np.sqrt(df + 1),
        error,
        t,
        df,
        p,
        np.full_like(mean, -np.inf) if alternative == "less" else mean - width,
        np.full_like(mean, np.inf) if alternative == "greater" else mean + width,
        np.maximum(stdtr(df, -above), stdtr(df, below)),
    )


def _finite(bound: float) -> float | None:
    return float(bound) if np.isfinite(bound) else None
