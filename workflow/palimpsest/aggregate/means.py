"""Estimates of a mean difference and their standard errors, for pairs that may share a seed or an order.

Every function works on the last axis, over pairs; axes before it are studies of the same design, so that thousands of
simulated studies go through the code that analyses the real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Clusters = Mapping[str, Sequence[object]]
BOTH = "order and seed"
# Fractions of whole samples differ by more than this, or not at all: what is smaller is rounding.
NO_DIFFERENCE = 1e-12


@dataclass(frozen=True)
class Estimate:
    """An estimate of the mean difference; arrays over studies.

    Args:
        by: what its standard error allows for: None (the pairs are independent), a factor, or both.
        mean: over the pairs, or over the means by the levels of the factor.
        standard_error: of that mean.
        df: degrees of freedom of the standard error, a whole number.
    """

    by: str | None
    mean: np.ndarray
    standard_error: np.ndarray
    df: np.ndarray

    def half_width(self, alpha: float) -> np.ndarray:
        """Half the width of the two-sided interval at 1 − alpha."""
        from scipy.special import stdtrit

        return stdtrit(self.df, 1 - alpha / 2) * self.standard_error


def naive(differences: np.ndarray) -> Estimate:
    """The mean over pairs that are taken as independent."""
    n = differences.shape[-1]
    return _estimate(None, differences.mean(-1), differences.var(-1, ddof=1) / n, n - 1)


def estimates(differences: np.ndarray, clusters: Clusters) -> list[Estimate]:
    """Every estimate that the design asks for; the naive one alone where no pairs share a level.

    A factor counts where it has several levels and several pairs on one of them; one with a single level is a
    condition of the whole statement. For such a factor the means over its levels are the sample. For two of them there
    is a third estimate, whose variance is the sum of both less what they count twice: V = V_order + V_seed − V_rest,
    with Satterthwaite's degrees of freedom rounded down, and never fewer than the factor with fewer levels has. Each
    of the first two alone leaves out the other factor's share of the variance.

    Reference: Satterthwaite, An Approximate Distribution of Estimates of Variance Components, Biometrics Bulletin
    1946; Cameron, Gelbach and Miller, Robust Inference with Multiway Clustering, Journal of Business & Economic
    Statistics 2011.
    """
    factors = {name: indicator(levels) for name, levels in sorted(clusters.items()) if is_cluster(levels)}
    found = [_by_factor(name, differences, at) for name, at in factors.items()]
    if len(found) == 2:
        found.append(_by_both(differences, found, list(factors.values())))
    return found or [naive(differences)]


def widest(candidates: Sequence[Estimate], alpha: float) -> np.ndarray:
    """Index of the estimate with the widest interval, for each study."""
    return np.argmax([candidate.half_width(alpha) for candidate in candidates], axis=0)


def pick(candidates: Sequence[Estimate], chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard error and degrees of freedom of the chosen candidate of each study."""
    columns = ([getattr(c, name) for c in candidates] for name in ("mean", "standard_error", "df"))
    return tuple(np.take_along_axis(np.stack(column), chosen[None], 0)[0] for column in columns)  # type: ignore[return-value]


def is_cluster(levels: Sequence[object]) -> bool:
    """Whether pairs share levels of a factor that has several."""
    return 1 < len(set(levels)) < len(levels)


def fewest_levels(clusters: Clusters) -> int:
    """Levels of the clustering factor that has fewest; 0 without one."""
    return min((len(set(levels)) for levels in clusters.values() if is_cluster(levels)), default=0)


def indicator(levels: Sequence[object]) -> np.ndarray:
    """Pairs × levels, 1 where a pair has the level; the levels in sorted order."""
    at = places(levels)
    found = np.zeros((len(at), max(at, default=-1) + 1))
    found[np.arange(len(at)), at] = 1
    return found


def places(levels: Sequence[object]) -> np.ndarray:
    """The place of each pair's level among the sorted levels."""
    place = {level: at for at, level in enumerate(sorted(set(levels)))}  # type: ignore[type-var]
    return np.array([place[level] for level in levels], dtype=int)


def _by_factor(name: str, differences: np.ndarray, at: np.ndarray) -> Estimate:
    means = differences @ (at / at.sum(0))
    n_levels = at.shape[1]
    return _estimate(name, means.mean(-1), means.var(-1, ddof=1) / n_levels, n_levels - 1)


def _by_both(differences: np.ndarray, one_way: Sequence[Estimate], factors: Sequence[np.ndarray]) -> Estimate:
    n = differences.shape[-1]
    rest, df_rest = _without_effects(differences, factors)
    variances = [estimate.standard_error**2 for estimate in one_way]
    variance_rest = (rest**2).sum(-1) / df_rest / n if df_rest else np.zeros_like(variances[0])
    variance = np.maximum(sum(variances) - variance_rest, 0.0)
    spread = sum(v**2 / e.df for v, e in zip(variances, one_way, strict=True)) + variance_rest**2 / max(df_rest, 1)
    fewest = min(int(np.min(estimate.df)) for estimate in one_way)
    satterthwaite = np.floor(np.divide(variance**2, spread, out=np.zeros_like(variance), where=spread > 0))
    return Estimate(BOTH, differences.mean(-1), np.sqrt(variance), np.maximum(satterthwaite, fewest))


def _without_effects(differences: np.ndarray, factors: Sequence[np.ndarray]) -> tuple[np.ndarray, int]:
    """What additive effects of two factors leave of the differences, and its degrees of freedom.

    The factor with more levels is taken out by its means and the other one by least squares on what is left of it
    (Frisch and Waugh, Econometrica 1933): no array is larger than pairs × levels of the smaller one.
    """
    small, large = sorted(factors, key=lambda at: at.shape[1])

    def without_large(values: np.ndarray) -> np.ndarray:
        return values - (values @ (large / large.sum(0))) @ large.T

    values, left = without_large(differences), without_large(small.T).T
    left[np.abs(left) < NO_DIFFERENCE] = 0.0
    n, rank = len(left), int(np.linalg.matrix_rank(left))
    return values - (values @ np.linalg.pinv(left).T) @ left.T, n - large.shape[1] - rank


def _estimate(by: str | None, mean: np.ndarray, variance: np.ndarray, df: int) -> Estimate:
    return Estimate(by, np.asarray(mean), np.sqrt(variance), np.full(np.shape(mean), float(df)))
