"""Verdicts and the sentences that say them."""

from __future__ import annotations

from typing import Any

import pytest

from palimpsest.statistics.paired import PairedTest
from palimpsest.statistics.verdict import reach_verdict, verdict_sentence


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


ROW = {
    **{"a": "replay", "b": "finetune", "metric": "average_accuracy", "index": None, "protocol": "class_incremental"},
    **{"role": "primary", "alpha": 0.05, "equivalence_margin": 0.01, "n": 5, "mean": 0.02, "t": 1.754, "df": 4},
    **{"p": 0.1543, "p_adjusted": 0.1543, "ci_low": -0.0117, "ci_high": 0.0517, "confirmatory": True, "reason": None},
}


def test_a_verdict_in_words_names_the_methods_the_difference_and_the_test() -> None:
    assert verdict_sentence({**ROW, "verdict": "inconclusive"}) == (
        "whether replay and finetune differ in average_accuracy (class_incremental) remains open: "
        "replay − finetune = +2.00 percentage points, 95 % interval −1.17 to +5.17, "
        "n = 5 pairs, t(4) = 1.75, p = 0.154."
    )


@pytest.mark.parametrize(
    "word",
    ["better", "worse", "better, within δ", "worse, within δ", "equivalent", "not shown better", "not shown worse"],
)
def test_every_verdict_has_a_sentence_and_only_equivalence_is_called_so(word: str) -> None:
    sentence = verdict_sentence({**ROW, "verdict": word})
    assert "replay" in sentence
    assert ("equivalent" in sentence) == (word == "equivalent")


def test_a_one_sided_sentence_gives_the_bound() -> None:
    sentence = verdict_sentence({**ROW, "verdict": "not shown better", "ci_high": None, "reason": "one run failed"})
    assert "95 % bound at least −1.17" in sentence
    assert sentence.endswith("One run failed.")


def test_an_exploratory_comparison_says_so() -> None:
    assert "exploratory" in verdict_sentence({**ROW, "verdict": "better", "confirmatory": False})
