"""How much of the variance of final accuracies comes from the seed, from the order, and from the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.aggregate.means import NO_DIFFERENCE

SOURCES = ("order", "seed", "rest")


@dataclass(frozen=True)
class Component:
    """One source of variance.

    Args:
        df: degrees of freedom of its mean square.
        variance: its variance component; 0 where the mean square lies below that of the rest.
        share: of the sum of the components; None where all of them are 0.
    """

    df: int
    variance: float
    share: float | None


def split_variance(
    values: Sequence[float | None], seeds: Sequence[object], orders: Sequence[object]
) -> tuple[dict[str, Component], str | None]:
    """Variance components of the two-way analysis of variance without interaction, or the reason why there are none.

    On a grid of P orders and R seeds: σ²_order = (MS_order − MS_rest) / R, σ²_seed = (MS_seed − MS_rest) / P,
    σ²_rest = MS_rest, negative ones set to 0. The rest holds the interaction of seed and order. Undefined where each
    seed has an order of its own (the two are confounded), for a single order or seed, and on a grid with a hole.

    Args:
        values: one per run, of one task; None where a run ended before.
        seeds, orders: of each run.

    Reference: Searle, Casella and McCulloch, Variance Components, 1992, chapter 4.

    >>> components, reason = split_variance([0.5, 0.5, 0.75, 0.75], [0, 1, 0, 1], ["a", "a", "b", "b"])
    >>> {source: found.share for source, found in components.items()}
    {'order': 1.0, 'seed': 0.0, 'rest': 0.0}
    """
    reason = _undefined(values, seeds, orders)
    if reason is not None:
        return {}, reason
    grid = _grid(values, seeds, orders)
    n_orders, n_seeds = grid.shape
    by_order, by_seed = grid.mean(1), grid.mean(0)
    rest = grid - by_order[:, None] - by_seed + grid.mean()
    df = {"order": n_orders - 1, "seed": n_seeds - 1, "rest": (n_orders - 1) * (n_seeds - 1)}
    of_rest = float((rest**2).sum()) / df["rest"]
    variances = {
        "order": max(float(by_order.var(ddof=1)) - of_rest / n_seeds, 0.0),
        "seed": max(float(by_seed.var(ddof=1)) - of_rest / n_orders, 0.0),
        "rest": of_rest,
    }
    total = sum(variances.values())
    varies = np.sqrt(total) > NO_DIFFERENCE
    return {s: Component(df[s], variances[s], variances[s] / total if varies else None) for s in SOURCES}, None


def _undefined(values: Sequence[float | None], seeds: Sequence[object], orders: Sequence[object]) -> str | None:
    n_seeds, n_orders = len(set(seeds)), len(set(orders))
    if n_orders < 2 or n_seeds < 2:
        return f"fewer than two {'orders' if n_orders < 2 else 'seeds'}"
    if len(set(zip(seeds, orders, strict=True))) < n_seeds * n_orders:
        if n_seeds == n_orders == len(values):
            return "each seed has an order of its own: their effects cannot be told apart"
        return "not every seed was run with every order"
    n_absent = sum(value is None for value in values)
    return f"no final accuracy of {n_absent} of {len(values)} runs" if n_absent else None


def _grid(values: Sequence[float | None], seeds: Sequence[object], orders: Sequence[object]) -> np.ndarray:
    """Orders × seeds."""
    places = {key: value for key, value in zip(zip(orders, seeds, strict=True), values, strict=True)}
    rows, columns = sorted(set(orders)), sorted(set(seeds))  # type: ignore[type-var]
    return np.array([[places[row, column] for column in columns] for row in rows], dtype=float)
