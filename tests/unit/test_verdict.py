"""Verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from palimpsest.statistics.paired import PairedTest
from palimpsest.statistics.verdict import reach_verdict


def verdict(
    mean: float,
    p: float | None,
    p_equivalence: float | None = None,
    alternative: Any = "two-sided",
    direction: Any = "higher",
    margin: float | None = None,
) -> str | None:
    rules = {"alternative": alternative, "direction": direction, "alpha": 0.05, "margin": margin}
    return reach_verdict(PairedTest(n=5, mean=mean), p, p_equivalence, **rules)


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ("better", {"mean": 0.1, "p": 0.01}),
        ("worse", {"mean": -0.1, "p": 0.01}),
        ("worse", {"mean": 0.1, "p": 0.01, "direction": "lower"}),
        ("better", {"mean": -0.1, "p": 0.01, "direction": "lower"}),
        ("better", {"mean": 0.1, "p": 0.05}),
        ("better, within δ", {"mean": 0.1, "p": 0.01, "p_equivalence": 0.01}),
        ("worse, within δ", {"mean": -0.1, "p": 0.01, "p_equivalence": 0.01}),
        ("equivalent", {"mean": 0.1, "p": 0.2, "p_equivalence": 0.01}),
        ("inconclusive", {"mean": 0.1, "p": 0.2, "p_equivalence": 0.2}),
        ("inconclusive", {"mean": 0.1, "p": 0.2}),
        ("better", {"mean": 0.1, "p": 0.01, "alternative": "greater"}),
        ("not shown better", {"mean": 0.1, "p": 0.2, "alternative": "greater", "p_equivalence": 0.01}),
        ("better", {"mean": -0.1, "p": 0.01, "alternative": "less", "direction": "lower"}),
        ("not shown worse", {"mean": 0.1, "p": 0.2, "alternative": "greater", "direction": "lower"}),
        ("equivalent", {"mean": 0.01, "p": None, "margin": 0.02}),
        ("inconclusive", {"mean": 0.02, "p": None, "margin": 0.02}),
        ("inconclusive", {"mean": 0.0, "p": None}),
    ],
)
def test_the_verdict_follows_its_rules(expected: str, given: dict[str, Any]) -> None:
    assert verdict(**given) == expected


def test_there_is_no_verdict_on_fewer_than_two_pairs() -> None:
    rules = {"alternative": "two-sided", "direction": "higher", "alpha": 0.05, "margin": 0.5}
    assert reach_verdict(PairedTest(n=1, mean=0.0), None, None, **rules) is None
