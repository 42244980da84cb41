"""Simulated studies: how often the statistics claim what is not so, and how often their intervals cover.

`python tests/simulate.py` prints the tables of docs/statistics.md. Everything goes through the functions that analyse a
real study, on arrays of 2,000 studies at once; random numbers come from the named stream `simulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from palimpsest.aggregate.means import estimates, naive
from palimpsest.core.streams import generator
from palimpsest.statistics.bootstrap import bca_interval, cluster_interval
from palimpsest.statistics.mixed import fit_grid
from palimpsest.statistics.order_bootstrap import WORST_QUANTILE, worst_quantile_interval
from palimpsest.statistics.paired import Tested, t_tests

N_STUDIES = 2000
ALPHA, MARGIN = 0.05, 1.0
SECONDARY = 3
N_TASKS = 5


@dataclass(frozen=True)
class Design:
    """Units: `orders` × `seeds` crossed, or, with one order for each seed, so many paired units."""

    n_orders: int
    n_seeds: int
    crossed: bool = True

    @property
    def name(self) -> str:
        """As the tables call it."""
        return f"{self.n_seeds} seeds × {self.n_orders} orders" if self.crossed else f"{self.n_seeds} pairs"

    @property
    def n(self) -> int:
        """Number of units."""
        return self.n_orders * self.n_seeds if self.crossed else self.n_seeds

    @property
    def clusters(self) -> dict[str, list[int]]:
        """Order and seed of every unit."""
        if not self.crossed:
            return {"order": list(range(self.n)), "seed": list(range(self.n))}
        order, seed = np.divmod(np.arange(self.n), self.n_seeds)
        return {"order": order.tolist(), "seed": seed.tolist()}


PAIRED = [Design(n, n, crossed=False) for n in (5, 10, 25)]
CROSSED = [Design(2, 5), Design(5, 5), Design(10, 10)]
FIVE_BY_FIVE = CROSSED[1]
SHARES = {
    "no clustering": (0.0, 0.0, 1.0),
    "orders matter": (0.5, 0.0, 0.5),
    "seeds matter": (0.0, 0.5, 0.5),
    "both matter": (0.25, 0.25, 0.5),
    "hardly anything else": (0.45, 0.45, 0.1),
}


def draw(design: Design, kind: str, shares: Sequence[float], *key: str | int) -> np.ndarray:
    """Differences of studies without a true difference, studies × units, with variance about 1.

    Args:
        design: the units.
        kind: `normal`; `heavy` (t with 3 df); `skewed` (exponential; not what two equal methods give, whose
            differences are symmetric); `accuracies` (two methods with 1,000 test samples each, logit-normal effects).
        shares: of the variance, between orders, between seeds, and the rest.
        key: of the stream.
    """
    rng = generator("simulation", design.name, kind, *(round(1000 * share) for share in shares), *key)
    if kind != "accuracies":
        return _effects(rng, design, kind, shares)
    common = _effects(rng, design, "normal", shares)
    counts = []
    for _ in "ab":
        logit = 1.4 + 0.3 * common + 0.15 * _effects(rng, design, "normal", shares)
        counts.append(rng.binomial(1000, 1 / (1 + np.exp(-logit))))
    return (counts[0] - counts[1]) / 35.0


def _effects(rng: np.random.Generator, design: Design, kind: str, shares: Sequence[float]) -> np.ndarray:
    standard: Callable[..., np.ndarray] = {
        "normal": lambda size: rng.normal(size=size),
        "heavy": lambda size: rng.standard_t(3, size=size) / np.sqrt(3),
        "skewed": lambda size: rng.exponential(size=size) - 1,
    }[kind]
    if not design.crossed:
        return standard((N_STUDIES, design.n))
    by_order, by_seed, rest = np.sqrt(shares)
    orders = by_order * standard((N_STUDIES, design.n_orders, 1))
    seeds = by_seed * standard((N_STUDIES, 1, design.n_seeds))
    return (orders + seeds + rest * standard((N_STUDIES, design.n_orders, design.n_seeds))).reshape(N_STUDIES, -1)


def locked_test(
    design: Design, differences: np.ndarray, alternative: str = "two-sided", alpha: float = ALPHA
) -> Tested:
    """The locked test."""
    return t_tests(differences, alternative, alpha, MARGIN, design.clusters)


def binomial_error(rate: float, n: int = N_STUDIES) -> float:
    """Two and a half standard errors of a simulated rate."""
    return 2.5 * float(np.sqrt(max(rate, 1 / n) * (1 - min(rate, 1 - 1 / n)) / n))


def false_verdicts(design: Design, kind: str, shares: Sequence[float]) -> dict[str, float]:
    """The share of studies in which each confirmatory verdict is false, at a nominal 5 %."""
    null = draw(design, kind, shares)
    two_sided, one_sided = locked_test(design, null), locked_test(design, null, "greater")
    at_margin = locked_test(design, null + MARGIN)
    return {
        "better or worse": _share(two_sided.p <= ALPHA),
        "better, one-sided": _share(one_sided.p <= ALPHA),
        "equivalent": _share(at_margin.p_equivalence <= ALPHA),
        "any secondary": _share(secondary_rejections(design, kind, shares).any(0)),
        "with a failed run": _share(rejects_under_both_bounds(design, kind, shares)),
    }


def secondary_rejections(design: Design, kind: str, shares: Sequence[float]) -> np.ndarray:
    """Holm over true secondary hypotheses, comparisons × studies; the primary effect is so large that it always opens.

    The comparisons share a method, so that their differences correlate by one half.
    """
    shared = draw(design, kind, shares, "shared")
    own = [draw(design, kind, shares, f"own{number}") for number in range(SECONDARY)]
    p = np.array([locked_test(design, (shared + each) / np.sqrt(2)).p for each in own])
    place = np.argsort(np.argsort(p, axis=0), axis=0)
    passed = np.sort(p, axis=0) <= ALPHA / np.arange(SECONDARY, 0, -1)[:, None]
    return np.take_along_axis(np.logical_and.accumulate(passed, axis=0), place, axis=0)


def rejects_under_both_bounds(design: Design, kind: str, shares: Sequence[float]) -> np.ndarray:
    """One run of A failed, at random: a rejection on the complete pairs that both bounds, 10 SD away, repeat."""
    null = draw(design, kind, shares, "failed")
    left = {factor: levels[1:] for factor, levels in design.clusters.items()}
    complete = t_tests(null[:, 1:], "two-sided", ALPHA, None, left)
    holds, sign = complete.p <= ALPHA, np.sign(complete.t)
    for bound in (-10.0, 10.0):
        filled = locked_test(design, np.hstack([np.full((N_STUDIES, 1), bound), null[:, 1:]]))
        holds &= (filled.p <= ALPHA) & (np.sign(filled.t) == sign)
    return holds


def wider_of_two_rejections(design: Design, kind: str, shares: Sequence[float]) -> float:
    """The share of false rejections of the wider one of the tests by order and by seed."""
    by_order, by_seed, _ = estimates(draw(design, kind, shares), design.clusters)
    half_width = np.maximum(by_order.half_width(ALPHA), by_seed.half_width(ALPHA))
    return _share(np.abs(by_order.mean) > half_width)


def naive_rejections(design: Design, kind: str, shares: Sequence[float]) -> float:
    """The share of false rejections of the t test that takes all pairs as independent."""
    null = draw(design, kind, shares)
    estimate = naive(null)
    return _share(np.abs(estimate.mean) > estimate.half_width(ALPHA))


def coverage(design: Design, kind: str, shares: Sequence[float]) -> dict[str, float]:
    """How often each printed 95 % interval covers the true mean difference, 0."""
    null = draw(design, kind, shares)
    found = locked_test(design, null)
    estimate = naive(null)
    rates = {
        "locked test": _covers(found.ci_low, found.ci_high),
        "simultaneous": _share(_simultaneous(design, kind, shares)),
        "worst task": _share(_worst_task(design, kind, shares)),
    }
    if design.crossed:
        rates |= {
            "naive": _share(np.abs(estimate.mean) <= estimate.half_width(ALPHA)),
            "cluster bootstrap": _covers(*_in_parts(null, lambda part, rng: _by_clusters(part, design, rng))),
            "mixed model": _covers(*wald_of_mixed_model(design, null)),
        }
    else:
        rates["BCa"] = _covers(*_in_parts(null, lambda part, rng: bca_interval(part, "two-sided", ALPHA, rng)))
    return rates


def _by_clusters(part: np.ndarray, design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return cluster_interval(part, design.clusters, "two-sided", ALPHA, rng)


def _simultaneous(design: Design, kind: str, shares: Sequence[float]) -> np.ndarray:
    shared = draw(design, kind, shares, "shared")
    covered = np.full(N_STUDIES, True)
    for number in range(SECONDARY):
        values = (shared + draw(design, kind, shares, f"own{number}")) / np.sqrt(2)
        found = locked_test(design, values, alpha=ALPHA / SECONDARY)
        covered &= (found.ci_low <= 0) & (found.ci_high >= 0)
    return covered


def _worst_task(design: Design, kind: str, shares: Sequence[float]) -> np.ndarray:
    """The bounds of the task that turns out worst, against that task's true change; all are the same here, 0."""
    tasks = [draw(design, kind, shares, f"task{number}") for number in range(N_TASKS)]
    found = [locked_test(design, task, alpha=ALPHA / N_TASKS) for task in tasks]
    worst = np.argmin([task.mean(1) for task in tasks], axis=0)
    covers = np.array([(each.ci_low <= 0) & (each.ci_high >= 0) for each in found])
    return np.take_along_axis(covers, worst[None], 0)[0]


def wald_of_mixed_model(design: Design, differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The interval of `mixed_model`, on many studies at once."""
    found = fit_grid(differences.reshape(-1, design.n_orders, design.n_seeds))
    half = ndtri(1 - ALPHA / 2) * found.standard_error
    return found.mean - half, found.mean + half


def quantile_coverage(n_orders: int, n_seeds: int) -> float:
    """How often the bootstrap interval of the 5 % quantile of the final accuracy on a task covers it.

    Orders matter as much as seeds within them. The quantile is that of runs of new seeds in these same orders.
    """
    rng = generator("simulation", "quantile", n_orders, n_seeds)
    shape = (N_STUDIES, n_orders, n_seeds)
    by_order = rng.normal(size=(N_STUDIES, n_orders, 1))
    finals = by_order + rng.normal(size=shape)
    true = _quantile_of_mixture(by_order[:, :, 0])
    orders = np.repeat(np.arange(n_orders), n_seeds).tolist()
    low, high = worst_quantile_interval(finals.reshape(N_STUDIES, -1), orders, ALPHA, rng, n_resamples=999)
    return _share((low <= true) & (true <= high))


def _quantile_of_mixture(means: np.ndarray) -> np.ndarray:
    """5 % quantile of normals of variance 1 around the means of the last axis, by bisection."""
    low, high = means.min(-1) - 2, means.max(-1)
    for _ in range(40):
        middle = (low + high) / 2
        below = ndtr(middle[..., None] - means).mean(-1) < WORST_QUANTILE
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _in_parts(values: np.ndarray, interval: Callable) -> tuple[np.ndarray, np.ndarray]:
    """An interval for every study, resampled anew for each 250 of them, since scipy draws once for all of an array."""
    parts = [
        interval(part, generator("simulation", "resamples", number))
        for number, part in enumerate(np.split(values, len(values) // 250))
    ]
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _covers(low: np.ndarray, high: np.ndarray) -> float:
    return _share((low <= 0) & (high >= 0))


def _share(found: np.ndarray) -> float:
    return float(np.mean(found))


def cells() -> list[tuple[Design, str, str]]:
    """Design, kind of differences, name of the variance shares: everything that is simulated."""
    paired = [
        (design, kind, "no clustering") for kind in ("normal", "accuracies", "heavy", "skewed") for design in PAIRED
    ]
    crossed = [(design, "normal", shares) for design in CROSSED for shares in SHARES]
    return [*paired, *crossed, *((FIVE_BY_FIVE, "accuracies", shares) for shares in ("orders matter", "both matter"))]


def error_table() -> dict[str, dict[str, float]]:
    """False verdicts of every cell; on crossed ones also of the naive t and of the wider of the two one-way tests."""
    rows = {}
    for design, kind, name in cells():
        rates = false_verdicts(design, kind, SHARES[name])
        if design.crossed:
            rates["naive t"] = naive_rejections(design, kind, SHARES[name])
            rates["wider of two"] = wider_of_two_rejections(design, kind, SHARES[name])
        rows[_row_name(design, kind, name)] = rates
    return rows


def coverage_table() -> dict[str, dict[str, float]]:
    """Coverage in every cell."""
    return {_row_name(design, kind, name): coverage(design, kind, SHARES[name]) for design, kind, name in cells()}


def quantile_table() -> dict[str, dict[str, float]]:
    """Coverage of the bootstrap of the worst quantile, by orders × seeds."""
    sizes = [(1, 5), (5, 2), (5, 5), (10, 10)]
    return {f"{s} seeds × {o} orders": {"worst quantile": quantile_coverage(o, s)} for o, s in sizes}


def _row_name(design: Design, kind: str, shares: str) -> str:
    return f"{design.name}, {kind}, {shares}" if design.crossed else f"{design.name}, {kind}"


def markdown(rows: dict[str, dict[str, float]]) -> str:
    """A table in percent."""
    columns = list(dict.fromkeys(name for rates in rows.values() for name in rates))
    lines = ["| studies | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name, rates in rows.items():
        cells_of_row = (f"{100 * rates[column]:.1f}" if column in rates else "" for column in columns)
        lines.append(f"| {name} | " + " | ".join(cells_of_row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    for table in (error_table, coverage_table, quantile_table):
        print(markdown(table()), end="\n\n")
