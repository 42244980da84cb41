"""Rows of the table `comparisons` in words: the verdict, the numbers behind it, and what it may be used for.

The only place that words a verdict. What is not significant is never said to be equal, and a number has its unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palimpsest.core.numbers import is_missing, p_value, percent, points, statistic
from palimpsest.metrics._describe import describe

Row = Mapping[str, Any]

PROTOCOLS = {
    "class_incremental": "class-incremental",
    "task_incremental": "task-incremental",
    "domain_incremental": "domain-incremental",
    "unknown": "protocol not given",
}
_POINTS = "percentage points"
_UNDECIDED = "That is no evidence that they are equal."


def protocol(name: str) -> str:
    """A protocol in words."""
    return PROTOCOLS.get(name, name.replace("_", " "))


def quantity(row: Row) -> str:
    """What a comparison is about: the metric and the protocol. A planned comparison will do.

    >>> quantity({"metric": "forgetting", "index": None, "protocol": "class_incremental"})
    'forgetting, class-incremental'
    """
    described = describe(row["metric"])
    letter = {"beta": "β"}.get(described.index, described.index)
    index = "" if is_missing(row["index"]) else f" ({letter} = {row['index']})"
    return f"{described.label}{index}, {protocol(row['protocol'])}"


def sentence(row: Row) -> str:
    """The verdict as one sentence, for some verdicts with a second one against reading too much into them.

    >>> sentence({"a": "ewc", "b": "finetune", "verdict": None, "reason": "fewer than two pairs"})
    'No verdict on ewc and finetune: fewer than two pairs.'
    """
    a, b, verdict = row["a"], row["b"], row["verdict"]
    if verdict is None:
        return f"No verdict on {a} and {b}: {row['reason']}."
    return {
        "better": "{a} is better than {b}.",
        "worse": "{a} is worse than {b}.",
        "better, within δ": "{a} is better than {b}, and by less than {margin}.",
        "worse, within δ": "{a} is worse than {b}, and by less than {margin}.",
        "equivalent": "{a} and {b} are equivalent within {margin}.",
        "inconclusive": "Inconclusive: whether {a} and {b} differ remains open. " + _UNDECIDED,
        "not shown better": "{a} was not shown to be better than {b}. " + _UNDECIDED,
        "not shown worse": "{a} was not shown to be worse than {b}. " + _UNDECIDED,
    }[verdict].format(a=a, b=b, margin=_margin(row))


def evidence(row: Row) -> str:
    """The numbers behind a verdict: the difference with its interval, the pairs, and the tests that were decisive."""
    parts = [
        f"mean difference {row['a']} minus {row['b']}: {points(row['mean'])} {_POINTS}",
        interval(row),
        f"n = {row['n']} {'pair' if row['n'] == 1 else 'pairs'}",
        *_test(row),
        *filter(None, [equivalence(row)]),
    ]
    if row["n_failed_a"] or row["n_failed_b"]:
        parts.append(f"failed runs: {row['n_failed_a']} of {row['a']}, {row['n_failed_b']} of {row['b']}")
    return "; ".join(parts)


def interval(row: Row) -> str:
    """The interval of the mean difference with its level and unit."""
    if is_missing(row["ci_low"]) and is_missing(row["ci_high"]):
        return "no interval"
    return f"{100 * (1 - row['alpha']):g}% interval {bounds(row['ci_low'], row['ci_high'])} {_POINTS}"


def bounds(low: float | None, high: float | None) -> str:
    """Both bounds of a difference, or the one of a one-sided interval, for a column that names the unit.

    >>> bounds(0.578, 0.636), bounds(-0.012, None), bounds(None, None)
    ('+57.8 to +63.6', 'at least −1.2', '–')
    """
    if is_missing(low) and is_missing(high):
        return points(None)
    if is_missing(high):
        return f"at least {points(low)}"
    if is_missing(low):
        return f"at most {points(high)}"
    return f"{points(low)} to {points(high)}"


def equivalence(row: Row) -> str:
    """The test of equivalence, empty where it has no part in the verdict."""
    undecisive = row["alternative"] != "two-sided" or row["verdict"] in ("better", "worse")
    if is_missing(row["p_equivalence"]) or undecisive:
        return ""
    p = f"p {p_value(row['p_equivalence'])}" + _adjusted(row, "p_equivalence_adjusted")
    return f"test of equivalence within ±{percent(row['equivalence_margin'])} {_POINTS}: {p}"


def standing(row: Row) -> str:
    """The role of a comparison, and whether its verdict confirms anything; exploratory ones never do.

    >>> standing({"role": "secondary", "verdict": "better", "confirmatory": False})
    'secondary, exploratory'
    """
    if row["verdict"] is None:
        return f"{row['role']}, no verdict"
    if row["role"] == "exploratory":
        return "exploratory"
    return f"{row['role']}, {'confirmatory' if row['confirmatory'] else 'exploratory'}"


def preference(row: Row) -> str:
    """Which sign of the difference speaks for A."""
    return f"{'negative' if row['metric_direction'] == 'lower' else 'positive'}: {row['a']} better"


def worst_task(row: Row) -> str:
    """The task on which A falls behind B most, with the mean difference there and its bounds."""
    if row["worst_task"] is None:
        return "not defined"
    found = bounds(row["worst_task_ci_low"], row["worst_task_ci_high"])
    return f"{row['worst_task']}: {points(row['worst_task_change'])} ({found}) {_POINTS}"


def other_intervals(row: Row) -> str:
    """The intervals beside the one of the locked test, those that there are, in percentage points."""
    kinds = {
        "simultaneous": "ci_simultaneous" if row["role"] == "secondary" else None,
        f"{row['bootstrap']} bootstrap": "bootstrap",
        "naive": "ci_naive",
        "mixed model": "mixed",
    }
    there = {name: (row[f"{key}_low"], row[f"{key}_high"]) for name, key in kinds.items() if key}
    found = [f"{name} {bounds(*both)}" for name, both in there.items() if not all(map(is_missing, both))]
    return "; ".join(found) or "none"


def failed_runs(row: Row) -> str:
    """Between which means the difference lies, whatever the failed runs would have reached."""
    if not (row["n_failed_a"] or row["n_failed_b"]):
        return "no failed run"
    return f"mean {bounds(row['mean_bound_low'], row['mean_bound_high'])} {_POINTS}"


def _margin(row: Row) -> str:
    return f"the margin δ of {percent(row['equivalence_margin'])} {_POINTS}"


def _test(row: Row) -> list[str]:
    if is_missing(row["p"]):
        return []
    over = f" over the means by {row['clustered_by']}" if row["clustered_by"] else ""
    side = "two-sided" if row["alternative"] == "two-sided" else "one-sided"
    return [
        f"t({row['df']}) = {statistic(row['t'])}{over}",
        f"{side} p {p_value(row['p'])}" + _adjusted(row, "p_adjusted"),
    ]


def _adjusted(row: Row, column: str) -> str:
    return "" if row["role"] != "secondary" else f" (adjusted {p_value(row[column])})"
