"""Claims that need more than a significant difference: forgetting is reduced only at matched plasticity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palimpsest.core.numbers import percent, points
from palimpsest.statistics.paired import PairedTest, paired_t
from palimpsest.statistics.pairs import SCENARIOS, Pairs

PLASTICITY = "learning_accuracy"


@dataclass(frozen=True)
class Claim:
    """An announced claim: of which comparison, how much lower the diagonal may be (a fraction), and why it is
    exploratory for good, where it is."""

    claim: str
    comparison: str
    margin: float
    mark: str | None = None


@dataclass(frozen=True)
class Plasticity:
    """The diagonal of A minus that of B: its mean, and the ends of its interval, whatever failed runs would have
    reached; null where it is unknown."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class JudgedClaim:
    """Whether a claim holds, the diagonal it was judged by, and every condition that does not hold, in words."""

    claim: Claim
    plasticity: Plasticity
    passed: bool
    reason: str | None


def compare_plasticity(pairs: Pairs, alpha: float) -> Plasticity:
    """Mean difference of learning accuracy and the widest of its two-sided intervals at 1 − α over the scenarios.

    Differences that do not vary have the interval of their mean alone.

    Args:
        pairs: of the metric `learning_accuracy`.
        alpha: of the plan.
    """
    tests = {}
    for scenario in SCENARIOS:
        differences, clusters = pairs.differences(scenario)
        tests[scenario] = paired_t(differences, "two-sided", alpha, clusters=clusters)
    bounds = [_interval(test) for test in tests.values()]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return Plasticity(tests["complete"].mean, None, None)
    return Plasticity(tests["complete"].mean, min(low for low, _ in known), max(high for _, high in known))


def judge_claim(claim: Claim, row: Mapping[str, Any], plasticity: Plasticity) -> JudgedClaim:
    """Whether A reduces forgetting against B.

    All must hold: the locked test says that A forgets less; the lower confidence bound of the diagonal, A − B, is not
    below −margin; and forgetting falls by more than the diagonal does, so that a lower diagonal alone is no support:
    what was never learned cannot be forgotten.

    Args:
        claim: of the plan.
        row: of the table `comparisons`, about a metric of forgetting.
        plasticity: of the same two methods on the same units.
    """
    conditions = (_significance(row), _matched(claim, row, plasticity), _beyond_the_diagonal(row, plasticity))
    reasons = [reason for reason in conditions if reason is not None]
    return JudgedClaim(claim, plasticity, not reasons, "; ".join(reasons) or None)


def _significance(row: Mapping[str, Any]) -> str | None:
    if row["verdict"] in ("better", "better, within δ"):
        return None
    return f"less forgetting was not shown (verdict: {row['verdict'] or 'none'})"


def _matched(claim: Claim, row: Mapping[str, Any], plasticity: Plasticity) -> str | None:
    if plasticity.low is None or plasticity.high is None:
        return "plasticity is not known to be matched: learning accuracy has no interval"
    if plasticity.low >= -claim.margin:
        return None
    bound = f"{points(plasticity.low)}, margin {percent(claim.margin)} percentage points"
    if plasticity.high < 0:
        return f"the diagonal is lower: {row['a']} learns less than {row['b']} (lower bound {bound})"
    return f"plasticity is not shown to be matched: the diagonal may be lower (lower bound {bound})"


def _beyond_the_diagonal(row: Mapping[str, Any], plasticity: Plasticity) -> str | None:
    if row["mean"] is None or plasticity.mean is None or row["mean"] >= 0 or row["mean"] < plasticity.mean:
        return None
    return (
        f"a lower diagonal alone can account for it: forgetting {points(row['mean'])}, "
        f"learning accuracy {points(plasticity.mean)} percentage points"
    )


def _interval(test: PairedTest) -> tuple[float, float] | None:
    if test.ci_low is not None and test.ci_high is not None:
        return test.ci_low, test.ci_high
    return (test.mean, test.mean) if test.n > 1 and test.mean is not None else None
