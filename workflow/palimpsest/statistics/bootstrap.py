"""Bootstrap intervals of a mean difference: they describe, and decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.aggregate.means import NO_DIFFERENCE, Clusters, fewest_levels, is_cluster, places
from palimpsest.statistics.coverage import measured
from palimpsest.statistics.plan import Alternative

N_RESAMPLES = 9999
# Resamples of many pairs are drawn in parts, so that memory stays at some tens of MiB.
WEIGHTS_AT_ONCE = 4_000_000
# Below this number of pairs the interval is printed as a description.
DESCRIPTIVE_BELOW = 25
BCA, PERCENTILE, CLUSTER = "BCa", "percentile", "percentile over orders and seeds"
# Share of 2,000 simulated studies whose 95 % interval covers; tests/simulation compares. By pairs, normal differences.
BCA_COVERAGE = {5: 0.844, 10: 0.900, 25: 0.927}
# By the levels of the factor that has fewer, where seeds and orders make up nine tenths of the variance.
CLUSTER_COVERAGE = {2: 0.763, 5: 0.893, 10: 0.924}


@dataclass(frozen=True)
class Bootstrap:
    """A bootstrap interval; bounds are None where there is none, with the reason.

    Args:
        kind: `BCa`; `percentile` where BCa is undefined; `percentile over orders and seeds` for crossed pairs.
        low, high: at 1 − α; one of them None for a one-sided alternative.
        reason: why there is no interval.
    """

    kind: str | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def bootstrap(
    differences: np.ndarray, alternative: Alternative, alpha: float, clusters: Clusters, rng: np.random.Generator
) -> Bootstrap:
    """The bootstrap interval of the mean.

    Pairs that are independent are resampled, with the bias-corrected and accelerated interval; where it is undefined
    (NaN) the percentile one takes its place, and says so. Differences that do not vary have no interval: every
    resample would be the same. Pairs that share orders or seeds are resampled by whole orders and whole seeds.

    Args:
        differences: one per pair, finite.
        alternative, alpha: of the comparison.
        clusters: the level of each factor at each pair.
        rng: a named stream.

    Reference: Efron, Better Bootstrap Confidence Intervals, JASA 1987; Owen, The Pigeonhole Bootstrap, Annals of
    Applied Statistics 2007.
    """
    if len(differences) < 2:
        return Bootstrap(reason="fewer than two pairs")
    if differences.std(ddof=1) < NO_DIFFERENCE:
        return Bootstrap(reason="the differences do not vary")
    if any(is_cluster(levels) for levels in clusters.values()):
        return Bootstrap(CLUSTER, *_open(cluster_interval(differences, clusters, alternative, alpha, rng), alternative))
    low, high = bca_interval(differences, alternative, alpha, rng)
    if not np.isnan(low + high):
        return Bootstrap(BCA, *_open((low, high), alternative))
    at = rng.integers(len(differences), size=(N_RESAMPLES, len(differences)))
    return Bootstrap(PERCENTILE, *_open(_percentiles(differences[at].mean(1), alternative, alpha), alternative))


def bca_interval(
    differences: np.ndarray,
    alternative: Alternative,
    alpha: float,
    rng: np.random.Generator,
    n_resamples: int = N_RESAMPLES,
) -> tuple[np.ndarray, np.ndarray]:
    """BCa bounds of the mean over the last axis; NaN where undefined, infinite where a side is open.

    scipy draws one set of resamples for all studies of the axes before it.
    """
    import warnings

    from scipy.stats import DegenerateDataWarning
    from scipy.stats import bootstrap as resample

    with warnings.catch_warnings():
        # Its NaN is handled by the caller.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        interval = resample(
            (differences,),
            np.mean,
            axis=-1,
            method="BCa",
            n_resamples=n_resamples,
            batch=max(1, 5_000_000 // differences.size),
            confidence_level=1 - alpha,
            alternative=alternative,
            rng=rng,
            vectorized=True,
        ).confidence_interval
    return interval.low, interval.high


def cluster_interval(
    differences: np.ndarray,
    clusters: Clusters,
    alternative: Alternative,
    alpha: float,
    rng: np.random.Generator,
    n_resamples: int = N_RESAMPLES,
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bounds over resamples of whole levels, every clustering factor on its own, over the last axis.

    A pair counts as often as its order was drawn times as often as its seed was. A resample that draws no pair at all
    (only on an incomplete grid) does not count.
    """
    factors = [places(levels) for _, levels in sorted(clusters.items()) if is_cluster(levels)]
    at_once = max(1, WEIGHTS_AT_ONCE // differences.shape[-1])
    sizes = [min(at_once, n_resamples - start) for start in range(0, n_resamples, at_once)]
    means = np.concatenate([_resampled_means(differences, factors, rng, size) for size in sizes], axis=-1)
    return _percentiles(np.moveaxis(means, -1, 0), alternative, alpha)


def _resampled_means(
    differences: np.ndarray, factors: Sequence[np.ndarray], rng: np.random.Generator, n_resamples: int
) -> np.ndarray:
    """Means of resamples along a new last axis, in the place of that over pairs."""
    weights = np.ones((n_resamples, differences.shape[-1]))
    for at in factors:
        n_levels = at.max() + 1
        weights *= rng.multinomial(n_levels, np.full(n_levels, 1 / n_levels), size=n_resamples)[:, at]
    total = weights.sum(1)
    return differences @ weights[total > 0].T / total[total > 0]


def footnote(kind: str, clusters: Clusters, n: int) -> str:
    """What is to be said under a bootstrap interval: how often such a one covers, as simulated.

    >>> footnote(BCA, {}, 5)[:65]
    'descriptive; in simulations with 5 pairs the 95 % interval covere'
    """
    if kind == CLUSTER:
        levels = fewest_levels(clusters)
        return f"descriptive; {measured(CLUSTER_COVERAGE, levels, 'orders or seeds')}"
    prefix = "descriptive; " if n < DESCRIPTIVE_BELOW else ""
    return f"{prefix}{measured(BCA_COVERAGE, n, 'pairs')}"


def _percentiles(means: np.ndarray, alternative: Alternative, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    tail = alpha / 2 if alternative == "two-sided" else alpha
    return np.quantile(means, tail, axis=0), np.quantile(means, 1 - tail, axis=0)


def _open(bounds: tuple[np.ndarray, np.ndarray], alternative: Alternative) -> tuple[float | None, float | None]:
    low, high = map(float, bounds)
    return (None if alternative == "less" else low), (None if alternative == "greater" else high)
