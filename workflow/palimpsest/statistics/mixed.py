"""A mixed model of the differences, as a diagnostic beside the locked test: mean + seed + order + rest.

On a complete grid restricted maximum likelihood is the analysis of variance, also on the boundary; elsewhere
statsmodels searches for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from palimpsest.aggregate.means import NO_DIFFERENCE, Clusters, indicator, is_cluster, places

# A share of the variance below this counts as 0, the boundary of the parameter space: the search stops short of it.
BOUNDARY = 0.01
# On an incomplete grid; the search takes half a minute there, and grows with the square.
MOST_SEARCHED = 2500
# Share of 2,000 simulated studies whose 95 % interval covers, by the levels of the factor that has fewer, in the worst
# of five divisions of the variance; tests/simulation compares.
MIXED_COVERAGE = {2: 0.810, 5: 0.888, 10: 0.922}


@dataclass(frozen=True)
class Mixed:
    """A fit by restricted maximum likelihood; None where there is none.

    Args:
        ci_low, ci_high: Wald interval of the mean at 1 − α, always two-sided.
        sd_order, sd_seed, sd_rest: square roots of the variance components; None for a factor that is no cluster.
        note: `singular: …` where a component is estimated as 0, what did not converge, or why nothing was fitted.
    """

    ci_low: float | None = None
    ci_high: float | None = None
    sd_order: float | None = None
    sd_seed: float | None = None
    sd_rest: float | None = None
    note: str | None = None


def mixed_model(differences: np.ndarray, clusters: Clusters, alpha: float) -> Mixed:
    """Fit a random effect for each factor whose levels pairs share.

    The Wald interval takes the variances as known: with few levels it is too narrow, and a component on the boundary
    makes it narrower still.

    Args:
        differences: one per pair, finite.
        clusters: the level of each factor (`order`, `seed`) at each pair.
        alpha: the interval is at 1 − alpha.

    Reference: Bates, Mächler, Bolker and Walker, Fitting Linear Mixed-Effects Models Using lme4, Journal of
    Statistical Software 2015 (the model); statsmodels MixedLM (the search).
    """
    factors = {name: levels for name, levels in sorted(clusters.items()) if is_cluster(levels)}
    if not factors:
        return Mixed(note="not fitted: no pairs share an order or a seed")
    scale = differences.std(ddof=1)
    if scale < NO_DIFFERENCE:
        return Mixed(note="not fitted: the differences do not vary")
    from scipy.stats import norm

    found = _fit(differences / scale, factors)
    if isinstance(found, str):
        return Mixed(note=f"not fitted: {found}")
    half = norm.ppf(1 - alpha / 2) * found.standard_error
    variances = found.variances
    singular = [name for name in factors if variances[name] < BOUNDARY * sum(variances.values())]
    note = [f"singular: no variance left for {' and '.join(singular)}"] if singular else []
    note += [] if found.converged else ["did not converge"]
    sds = {f"sd_{name}": float(scale * np.sqrt(variance)) for name, variance in variances.items()}
    bounds = (float(scale * (found.mean + side * half)) for side in (-1, 1))
    return Mixed(*bounds, note="; ".join(note) or None, **sds)


@dataclass(frozen=True)
class Fit:
    """Estimates; numbers, or arrays over studies. Variances by `order`, `seed` and `rest`, none below 0."""

    mean: np.ndarray
    standard_error: np.ndarray
    variances: Mapping[str, np.ndarray]
    converged: bool = True


def fit_grid(grid: np.ndarray) -> Fit:
    """The fit on complete grids, `[..., order, seed]`: analysis of variance, negative components pooled with the rest.

    Reference: Thompson, The Problem of Negative Estimates of Variance Components, Annals of Mathematical Statistics
    1962.
    """
    n_orders, n_seeds = grid.shape[-2:]
    by_order, by_seed, mean = grid.mean(-1), grid.mean(-2), grid.mean((-2, -1))
    rest = grid - by_order[..., :, None] - by_seed[..., None, :] + mean[..., None, None]
    df = np.array([n_orders - 1, n_seeds - 1, (n_orders - 1) * (n_seeds - 1)])
    squares = np.stack([grid.size / mean.size * by_order.var(-1), grid.size / mean.size * by_seed.var(-1)], -1)
    of_rest = (rest**2).sum((-2, -1))
    pooled = np.full(squares.shape, False)
    for _ in range(2):
        ratio = np.where(pooled, np.inf, squares / df[:2] / _pooled(squares, of_rest, pooled, df)[..., None])
        smallest = ratio == ratio.min(-1, keepdims=True)
        pooled |= smallest & (ratio < 1)
    mean_square_rest = _pooled(squares, of_rest, pooled, df)
    excess = np.where(pooled, 0.0, squares / df[:2] - mean_square_rest[..., None])
    variance_of_mean = (excess.sum(-1) + mean_square_rest) / (n_orders * n_seeds)
    variances = {"order": excess[..., 0] / n_seeds, "seed": excess[..., 1] / n_orders, "rest": mean_square_rest}
    return Fit(mean, np.sqrt(variance_of_mean), variances)


def _pooled(squares: np.ndarray, of_rest: np.ndarray, pooled: np.ndarray, df: np.ndarray) -> np.ndarray:
    """The mean square of the rest with what was pooled into it."""
    return (of_rest + (squares * pooled).sum(-1)) / (df[2] + (df[:2] * pooled).sum(-1))


def _fit(values: np.ndarray, factors: Clusters) -> Fit | str:
    """The fit, or why there is none."""
    grid = _as_grid(values, factors)
    if grid is not None:
        return fit_grid(grid)
    if len(values) > MOST_SEARCHED:
        return f"more than {MOST_SEARCHED:,} pairs on an incomplete grid"
    result, said = _search(values, {name: indicator(levels) for name, levels in factors.items()})
    if result is None or not np.isfinite(result.bse_fe[0]):
        return "; ".join(said) or "no standard error"
    found = dict(zip(factors, np.maximum(result.vcomp, 0.0), strict=True))
    return Fit(result.fe_params[0], result.bse_fe[0], {**found, "rest": result.scale}, result.converged)


def _as_grid(values: np.ndarray, factors: Clusters) -> np.ndarray | None:
    """Orders × seeds, where every order was run with every seed; else null."""
    if len(factors) < 2:
        return None
    at = tuple(places(levels) for _, levels in sorted(factors.items()))
    grid = np.full([place.max() + 1 for place in at], np.nan)
    grid[at] = values
    return grid if grid.size == len(values) and not np.isnan(grid).any() else None


def _search(values: np.ndarray, factors: dict[str, np.ndarray]):
    """The fitted model, and what was warned of; None where the optimizer met a singular matrix."""
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    columns = [[[f"{name}{level}" for level in range(at.shape[1])]] for name, at in factors.items()]
    components = VCSpec(list(factors), columns, [[at] for at in factors.values()])
    ones = np.ones(len(values))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return MixedLM(values, ones[:, None], groups=ones, exog_vc=components).fit(reml=True), []
        except np.linalg.LinAlgError as error:
            return None, [str(error), *sorted({str(warning.message) for warning in caught})]
