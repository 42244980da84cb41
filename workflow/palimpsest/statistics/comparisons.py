"""All comparisons of a plan: tests, adjustment within their families, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.statistics.intervals import other_intervals
from palimpsest.statistics.paired import PairedTest, paired_t
from palimpsest.statistics.pairs import SCENARIOS, Pairs
from palimpsest.statistics.plan import Analysis, Comparison
from palimpsest.statistics.verdict import reach_verdict, verdict_that_holds
from palimpsest.statistics.wilcoxon import wilcoxon_p
from palimpsest.statistics.worst_task import worst_task_change


@dataclass(frozen=True)
class Finding:
    """One comparison in one scenario: its test, the p adjusted in their families, the verdict."""

    test: PairedTest
    p: float | None
    p_equivalence: float | None
    verdict: str | None

    def rejects(self, alpha: float) -> bool:
        """Whether the hypothesis of no difference is rejected."""
        return self.p is not None and self.p <= alpha


def compare(analysis: Analysis, pairs: Sequence[Pairs]) -> list[dict[str, Any]]:
    """Rows of the table `comparisons`, in the order of the plan.

    The primary comparison is tested alone at α. The secondary ones are adjusted by Holm's method, in one family for
    the tests of a difference and in another one for those of equivalence, and are confirmatory only if the primary
    one rejects. The exploratory ones belong to no family: their p is not adjusted, and they confirm nothing. One that
    is exploratory for good keeps its place in its family, so that nobody makes the family smaller by a late change; if
    it is the primary one, no other one is confirmatory. A verdict that fails to hold under both bounds for the failed
    runs is not given.

    Args:
        analysis: the plan.
        pairs: of each of its comparisons.

    Reference: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 1979.
    """
    findings = {scenario: _findings(analysis, pairs, scenario) for scenario in SCENARIOS}
    primary = [findings[scenario][0] for scenario in SCENARIOS]
    # Scenarios that reject in opposite directions leave the primary comparison without a verdict: nothing was shown.
    rejecting = [np.sign(found.test.mean) for found in primary if found.rejects(analysis.alpha)]
    primary_rejects = len(rejecting) == len(primary) and len(set(rejecting)) == 1
    rows = []
    for at, comparison in enumerate(analysis.comparisons):
        by_scenario = {scenario: findings[scenario][at] for scenario in SCENARIOS}
        reason = _not_confirmatory(comparison, analysis.comparisons[0], primary_rejects)
        rows.append(_row(analysis, comparison, pairs[at], by_scenario, reason))
    return rows


def _not_confirmatory(comparison: Comparison, primary: Comparison, primary_rejects: bool) -> str | None:
    if comparison.mark is not None:
        return comparison.mark
    if comparison.role == "secondary" and primary.mark is not None:
        return "the primary comparison is exploratory"
    reasons = {
        "primary": None,
        "secondary": None if primary_rejects else "the primary comparison does not reject",
        "exploratory": "announced as exploratory",
    }
    return reasons[comparison.role]


def adjust(p: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p of one family; one that is None counts as 1, so that the family keeps its announced size.

    >>> adjust([0.01, None, 0.04])
    [0.03, None, 0.08]
    """
    if not p:
        return []
    from statsmodels.stats.multitest import multipletests

    adjusted = multipletests([1.0 if value is None else value for value in p], method="holm")[1]
    return [None if value is None else float(new) for value, new in zip(p, adjusted, strict=True)]


def within(row: Mapping[str, Any], widest: float) -> dict[str, Any]:
    """The row with the bounds of its intervals cut at ±widest: no difference of two values of the metric lies beyond.

    >>> within({"mean": 0.4, "ci_low": -0.3, "ci_high": 1.1, "bootstrap_low": None}, 1.0)
    {'mean': 0.4, 'ci_low': -0.3, 'ci_high': 1.0, 'bootstrap_low': None}
    """
    bounds = [name for name, value in row.items() if name.endswith(("_low", "_high")) and value is not None]
    return {**row, **{name: min(max(row[name], -widest), widest) for name in bounds}}


def _findings(analysis: Analysis, pairs: Sequence[Pairs], scenario: str) -> list[Finding]:
    tests = [
        _test(analysis, comparison, found, scenario)
        for comparison, found in zip(analysis.comparisons, pairs, strict=True)
    ]
    p = _adjusted_in_their_families(analysis, [test.p for test in tests])
    p_equivalence = _adjusted_in_their_families(analysis, [test.p_equivalence for test in tests])
    return [
        Finding(
            tests[at],
            p[at],
            p_equivalence[at],
            _verdict(analysis, comparison, pairs[at], tests[at], p[at], p_equivalence[at]),
        )
        for at, comparison in enumerate(analysis.comparisons)
    ]


def _adjusted_in_their_families(analysis: Analysis, p: Sequence[float | None]) -> list[float | None]:
    """The primary p alone, the secondary ones in their family, the exploratory ones as they are."""
    last = 1 + analysis.n_secondary
    return [p[0], *adjust(p[1:last]), *p[last:]]


def _test(analysis: Analysis, comparison: Comparison, pairs: Pairs, scenario: str) -> PairedTest:
    differences, clusters = pairs.differences(scenario)
    return paired_t(differences, comparison.alternative, analysis.alpha, analysis.equivalence_margin, clusters)


def _verdict(
    analysis: Analysis,
    comparison: Comparison,
    pairs: Pairs,
    test: PairedTest,
    p: float | None,
    p_equivalence: float | None,
) -> str | None:
    return reach_verdict(
        test,
        p,
        p_equivalence,
        alternative=comparison.alternative,
        direction=pairs.metric.direction,
        alpha=analysis.alpha,
        margin=analysis.equivalence_margin,
    )


def _row(
    analysis: Analysis,
    comparison: Comparison,
    pairs: Pairs,
    findings: Mapping[str, Finding],
    not_confirmatory: str | None,
) -> dict[str, Any]:
    finding = findings["complete"]
    verdicts = {scenario: found.verdict for scenario, found in findings.items()}
    verdict = verdict_that_holds(verdicts, comparison.alternative, pairs.metric.direction)
    means = [found.test.mean for found in findings.values() if found.test.mean is not None]
    widest = pairs.metric.range[1] - pairs.metric.range[0]
    tested = ("n", "mean", "sd", "standard_error", "t", "df", "p", "ci_low", "ci_high", "p_equivalence", "clustered_by")
    return {
        "comparison": comparison.name,
        **{
            name: getattr(comparison, name) for name in ("role", "a", "b", "protocol", "metric", "index", "alternative")
        },
        "unit": pairs.metric.unit,
        "metric_direction": pairs.metric.direction,
        "alpha": analysis.alpha,
        "equivalence_margin": analysis.equivalence_margin,
        "n_failed_a": int(pairs.failed_a.sum()),
        "n_failed_b": int(pairs.failed_b.sum()),
        **within({name: getattr(finding.test, name) for name in tested}, widest),
        "p_adjusted": finding.p,
        "p_equivalence_adjusted": finding.p_equivalence,
        "mean_bound_low": min(means, default=None),
        "mean_bound_high": max(means, default=None),
        **_sensitivity(analysis, comparison, pairs),
        **within(other_intervals(analysis, comparison, *pairs.differences("complete")), widest),
        "confirmatory": not_confirmatory is None and verdict is not None,
        "verdict": verdict,
        "reason": _reason(finding.test, verdicts, not_confirmatory, pairs),
    }


def _reason(
    test: PairedTest, verdicts: Mapping[str, str | None], not_confirmatory: str | None, pairs: Pairs
) -> str | None:
    reasons = [] if len(pairs.a) else ["the methods share no unit"]
    if pairs.undefined:
        lacking = np.isnan(pairs.a) & ~pairs.failed_a | np.isnan(pairs.b) & ~pairs.failed_b
        reasons.append(f"{lacking.sum()} of {len(lacking)} pairs left out, though no run failed: {pairs.undefined}")
    reasons += [test.reason] if test.reason else []
    if verdicts["complete"] is not None and len(set(verdicts.values())) > 1:
        found = ", ".join(f"{scenario}: {found}" for scenario, found in verdicts.items())
        reasons.append(f"the verdict depends on what failed runs would have reached ({found})")
    reasons += [not_confirmatory] if not_confirmatory else []
    return "; ".join(reasons) or None


def _sensitivity(analysis: Analysis, comparison: Comparison, pairs: Pairs) -> dict[str, Any]:
    """What stands beside the locked test and decides nothing."""
    differences, clusters = pairs.differences("complete")
    worst = worst_task_change(pairs.finals, analysis.alpha, pairs.clusters)
    agreeing, n_orders = _orders_agreeing(differences, clusters["order"])
    return {
        "p_wilcoxon": wilcoxon_p(differences, comparison.alternative) if len(differences) > 1 else None,
        "orders_agreeing": agreeing,
        "n_orders": n_orders,
        "worst_task": worst.task,
        "worst_task_change": worst.change,
        **within({"worst_task_ci_low": worst.ci_low, "worst_task_ci_high": worst.ci_high}, 1.0),
    }


def _orders_agreeing(differences: np.ndarray, orders: Sequence[object]) -> tuple[int, int]:
    """How many orders have a mean difference of the sign of the overall one, and how many orders there are."""
    distinct = sorted(set(orders))
    means = [differences[[order == this for order in orders]].mean() for this in distinct]
    sign = np.sign(differences.mean()) if len(differences) else 0
    return sum(bool(sign) and np.sign(mean) == sign for mean in means), len(distinct)
