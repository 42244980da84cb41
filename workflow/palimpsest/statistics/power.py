"""What a locked plan can find: power, the units that an effect needs, the effect that the units can find.

Units with a seed and an order each of their own follow the noncentral t distribution. Crossed units are simulated
through the test that will decide, under stated shares of the variance: what they can find depends on how much of it
comes from seeds and orders, and a formula for independent pairs would promise too much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from palimpsest.core.streams import generator
from palimpsest.plan.power import paired_t_power
from palimpsest.statistics.paired import t_tests
from palimpsest.statistics.plan import Alternative

N_STUDIES = 2000
# Shares of the variance of the differences that come from orders and from seeds; the rest is the pair's own.
SCENARIOS = {
    "orders and seeds hardly matter": (0.0, 0.0),
    "orders make up half of the variance": (0.5, 0.0),
    "seeds make up half of the variance": (0.0, 0.5),
    "orders and seeds make up a quarter each": (0.25, 0.25),
}
MOST_UNITS, MOST_LEVELS = 10_000, 60
MOST_EFFECT_SD = 100.0


@dataclass(frozen=True)
class Design:
    """Units of a study.

    Args:
        n_seeds, n_orders: how many there are.
        crossed: every seed with every order; else as many units as seeds, and nothing is shared.
    """

    n_seeds: int
    n_orders: int
    crossed: bool

    @property
    def n(self) -> int:
        """Number of units."""
        return self.n_seeds * self.n_orders if self.crossed else self.n_seeds


@dataclass(frozen=True)
class Question:
    """What the test looks for.

    Args:
        sd: SD of the paired differences, in the unit of the effect.
        alpha, alternative: of the primary comparison; a one-sided one is taken to point in the effect's direction.
    """

    sd: float
    alpha: float
    alternative: Alternative


def power_of(design: Design, question: Question, effect: float, shares: tuple[float, float] = (0.0, 0.0)) -> float:
    """Probability that the locked test rejects, in [0, 1].

    Args:
        design: the units.
        question: the test.
        effect: true mean difference.
        shares: of the variance, from orders and from seeds; no matter where nothing is crossed.
    """
    if not is_simulated(design):
        return paired_t_power(design.n, effect, question.sd, question.alpha, question.alternative)
    alternative: Alternative = "two-sided" if question.alternative == "two-sided" else "greater"
    clusters = {
        "order": np.repeat(np.arange(design.n_orders), design.n_seeds).tolist(),
        "seed": np.tile(np.arange(design.n_seeds), design.n_orders).tolist(),
    }
    values = abs(effect) / question.sd + standard_differences(design, shares)
    return float(np.mean(t_tests(values, alternative, question.alpha, None, clusters).p <= question.alpha))


def is_simulated(design: Design) -> bool:
    """Whether units share both seeds and orders, so that no formula holds; a single order or seed is shared by all."""
    return design.crossed and design.n_orders > 1 and design.n_seeds > 1


def units_needed(
    design: Design, question: Question, effect: float, power: float, shares: tuple[float, float] = (0.0, 0.0)
) -> Design | None:
    """The smallest design of the kind that has the power: paired units, or on a crossed one as many orders as seeds.

    None where more than 10,000 paired units, or more than 60 seeds and orders, would be needed.
    """

    def enough(size: int) -> bool:
        return power_of(_of_size(design, size), question, effect, shares) >= power

    size = _smallest(enough, 2, MOST_LEVELS if is_simulated(design) else MOST_UNITS)
    return None if size is None else _of_size(design, size)


def detectable_effect(
    design: Design, question: Question, power: float, shares: tuple[float, float] = (0.0, 0.0)
) -> float | None:
    """The true mean difference that the design finds with the power, to 1 % of the SD; None above 100 SD."""
    step = question.sd / 100
    found = _smallest(
        lambda steps: power_of(design, question, steps * step, shares) >= power, 1, int(100 * MOST_EFFECT_SD)
    )
    return None if found is None else found * step


def standard_differences(design: Design, shares: tuple[float, float]) -> np.ndarray:
    """Differences without an effect of 2,000 studies, with variance 1; the same ones each time they are asked for."""
    rng = generator("power", design.n_seeds, design.n_orders)
    shape = (N_STUDIES, design.n_orders, design.n_seeds)
    by_order, by_seed, rest = np.sqrt([*shares, 1 - sum(shares)])
    orders = by_order * rng.normal(size=(N_STUDIES, design.n_orders, 1))
    seeds = by_seed * rng.normal(size=(N_STUDIES, 1, design.n_seeds))
    return (orders + seeds + rest * rng.normal(size=shape)).reshape(N_STUDIES, -1)


def _of_size(design: Design, size: int) -> Design:
    return Design(size, size, True) if is_simulated(design) else Design(size, 1, False)


def _smallest(enough: Callable[[int], bool], least: int, most: int) -> int | None:
    """The smallest number for which a condition holds that holds from there on; None where it never does.

    >>> _smallest(lambda number: number >= 37, 2, 100)
    37
    """
    low, high = least - 1, least
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
