"""Verdicts: from a test to one of a few words, and from the words to a sentence.

========================= =========================================================================================
`better`, `worse`         significant; by the direction of the metric
`better, within δ`        significant, and the test of equivalence passes too (likewise `worse, within δ`)
`equivalent`              the test of equivalence passes alone
`inconclusive`            none of these; never worded as equal
`not shown better`        a one-sided test that is not significant (`not shown worse` where that was the alternative)
null                      fewer than two pairs
========================= =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palimpsest.metrics._declaration import Direction
from palimpsest.statistics.paired import PairedTest
from palimpsest.statistics.plan import Alternative


def reach_verdict(
    test: PairedTest,
    p: float | None,
    p_equivalence: float | None,
    *,
    alternative: Alternative,
    direction: Direction,
    alpha: float,
    margin: float | None,
) -> str | None:
    """The verdict on A against B.

    Args:
        test: of A − B.
        p, p_equivalence: of the test, adjusted in the families that they belong to.
        alternative: as announced, of A − B.
        direction: which values of the metric are better.
        alpha: error rate of the family.
        margin: δ, where equivalence was announced.
    """
    if test.n < 2:
        return None
    if p is None:
        return "equivalent" if margin is not None and abs(test.mean) < margin else "inconclusive"
    if alternative != "two-sided":
        word = announced_word(alternative, direction)
        return word if p <= alpha else f"not shown {word}"
    equivalent = p_equivalence is not None and p_equivalence <= alpha
    if p > alpha:
        return "equivalent" if equivalent else "inconclusive"
    word = "better" if (test.mean > 0) == (direction == "higher") else "worse"
    return f"{word}, within δ" if equivalent else word


def announced_word(alternative: Alternative, direction: Direction) -> str:
    """What a one-sided alternative of A − B says of A: `better` or `worse`."""
    return "better" if (alternative == "greater") == (direction == "higher") else "worse"


def verdict_that_holds(
    verdicts: Mapping[str, str | None], alternative: Alternative, direction: Direction
) -> str | None:
    """The verdict that holds whatever the failed runs would have reached.

    Args:
        verdicts: by scenario; `complete` is the one on the complete pairs.
        alternative, direction: as in `reach_verdict`.
    """
    if verdicts["complete"] is None or len(set(verdicts.values())) == 1:
        return verdicts["complete"]
    return "inconclusive" if alternative == "two-sided" else f"not shown {announced_word(alternative, direction)}"


def verdict_sentence(row: Mapping[str, Any]) -> str:
    """A row of the table `comparisons` in words: the verdict, the difference with its interval, the test.

    >>> verdict_sentence({"a": "ewc", "b": "finetune", "metric": "forgetting", "index": None, "protocol": "p",
    ...     "n": 1, "verdict": None, "reason": "fewer than two pairs"})
    'ewc and finetune cannot be compared in forgetting (p): fewer than two pairs.'
    """
    a, b, what = row["a"], row["b"], _what(row)
    if row["verdict"] is None:
        return f"{a} and {b} cannot be compared in {what}: {row['reason']}."
    margin = f"{_points(row['equivalence_margin'])} percentage points" if row["equivalence_margin"] else ""
    words = {
        "better": f"{a} is better than {b} in {what}",
        "worse": f"{a} is worse than {b} in {what}",
        "better, within δ": f"{a} is better than {b} in {what}, by less than the margin of {margin}",
        "worse, within δ": f"{a} is worse than {b} in {what}, by less than the margin of {margin}",
        "equivalent": f"{a} and {b} are equivalent in {what} within {margin}",
        "inconclusive": f"whether {a} and {b} differ in {what} remains open",
        "not shown better": f"{a} was not shown to be better than {b} in {what}",
        "not shown worse": f"{a} was not shown to be worse than {b} in {what}",
    }
    sentence = f"{words[row['verdict']]}: {_numbers(row)}."
    reason = f" {row['reason'][0].upper()}{row['reason'][1:]}." if row["reason"] else ""
    return sentence + reason + ("" if row["confirmatory"] else " This comparison is exploratory.")


def _what(row: Mapping[str, Any]) -> str:
    index = "" if row["index"] is None else f" at {row['index']}"
    return f"{row['metric']}{index} ({row['protocol']})"


def _numbers(row: Mapping[str, Any]) -> str:
    difference = f"{row['a']} − {row['b']} = {_points(row['mean'], signed=True)} percentage points"
    if row["p"] is None:
        return f"{difference}, n = {row['n']} pairs"
    adjusted = "" if row["role"] == "primary" else f", {row['p_adjusted']:.3g} adjusted"
    test = f"n = {row['n']} pairs, t({row['df']}) = {row['t']:.2f}, p = {row['p']:.3g}{adjusted}"
    return f"{difference}, {_interval(row)}, {test}"


def _interval(row: Mapping[str, Any]) -> str:
    level = f"{100 * (1 - row['alpha']):g} %"
    low, high = row["ci_low"], row["ci_high"]
    if low is None:
        return f"{level} bound at most {_points(high, signed=True)}"
    if high is None:
        return f"{level} bound at least {_points(low, signed=True)}"
    return f"{level} interval {_points(low, signed=True)} to {_points(high, signed=True)}"


def _points(fraction: float, signed: bool = False) -> str:
    return f"{100 * fraction:{'+' if signed else ''}.2f}".replace("-", "−")
