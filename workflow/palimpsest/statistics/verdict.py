"""Verdicts: from a test to one of a few words. (`wording` says them in sentences.)

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
