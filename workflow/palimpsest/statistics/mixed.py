"""A mixed model of the differences, as a diagnostic beside the locked test: mean + seed + order + rest."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from palimpsest.statistics.means import NO_DIFFERENCE, Clusters, indicator, is_cluster

# A share of the variance below this counts as 0, the boundary of the parameter space: the optimizer stops short of it.
BOUNDARY = 0.01
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
    Statistical Software 2015 (the model); statsmodels MixedLM (the fit).
    """
    factors = {name: indicator(levels) for name, levels in sorted(clusters.items()) if is_cluster(levels)}
    if not factors:
        return Mixed(note="not fitted: no pairs share an order or a seed")
    scale = differences.std(ddof=1)
    if scale < NO_DIFFERENCE:
        return Mixed(note="not fitted: the differences do not vary")
    from scipy.stats import norm

    result, said = _fit(differences / scale, factors)
    if result is None or not np.isfinite(result.bse_fe[0]):
        return Mixed(note="not fitted: " + ("; ".join(said) or "no standard error"))
    half = norm.ppf(1 - alpha / 2) * result.bse_fe[0]
    variances = {**dict(zip(factors, result.vcomp, strict=True)), "rest": result.scale}
    singular = [name for name in factors if variances[name] < BOUNDARY * sum(variances.values())]
    note = [f"singular: no variance left for {' and '.join(singular)}"] if singular else []
    note += [] if result.converged else ["did not converge"]
    sds = {f"sd_{name}": float(scale * np.sqrt(max(variance, 0.0))) for name, variance in variances.items()}
    mean = result.fe_params[0]
    return Mixed(float(scale * (mean - half)), float(scale * (mean + half)), note="; ".join(note) or None, **sds)


def _fit(values: np.ndarray, factors: dict[str, np.ndarray]):
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
