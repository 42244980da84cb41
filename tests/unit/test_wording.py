"""Comparisons in words."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from palimpsest.core import numbers
from palimpsest.core.tables import TABLES
from palimpsest.metrics import _describe
from palimpsest.statistics import wording

ROW: dict[str, Any] = {
    **dict.fromkeys(TABLES["comparisons"].schema.names),
    **{
        "role": "primary",
        "a": "replay",
        "b": "finetune",
        "metric": "average_accuracy",
        "protocol": "class_incremental",
    },
    **{"metric_direction": "higher", "alternative": "two-sided", "alpha": 0.05, "equivalence_margin": 0.01},
    **{"n": 5, "n_failed_a": 0, "n_failed_b": 0, "mean": 0.02, "t": 1.754, "df": 4, "p": 0.1543, "p_adjusted": 0.1543},
    **{"ci_low": -0.0117, "ci_high": 0.0517, "p_equivalence": 0.7, "p_equivalence_adjusted": 0.9},
    **{"worst_task": "t2", "worst_task_change": -0.1, "worst_task_ci_low": -0.3, "worst_task_ci_high": 0.1},
    **{"confirmatory": True, "verdict": "inconclusive"},
}
UNDECIDED = ("inconclusive", "not shown better", "not shown worse")
DECIDED = ("better", "worse", "better, within δ", "worse, within δ", "equivalent")


@pytest.mark.parametrize("verdict", [*DECIDED, *UNDECIDED])
def test_every_verdict_has_a_sentence_and_only_equivalence_is_called_so(verdict: str) -> None:
    sentence = wording.sentence({**ROW, "verdict": verdict})
    assert "replay" in sentence
    assert "finetune" in sentence
    assert ("equivalent" in sentence) == (verdict == "equivalent")
    assert ("no evidence that they are equal" in sentence) == (verdict in UNDECIDED)


@pytest.mark.parametrize("verdict", ["better, within δ", "worse, within δ", "equivalent"])
def test_a_margin_is_given_with_its_unit(verdict: str) -> None:
    assert "the margin δ of 1.0 percentage points" in wording.sentence({**ROW, "verdict": verdict})


def test_the_evidence_holds_the_difference_the_interval_and_the_tests_with_their_units() -> None:
    assert wording.evidence(ROW) == (
        "mean difference replay minus finetune: +2.0 percentage points; "
        "95% interval −1.2 to +5.2 percentage points; n = 5 pairs; t(4) = 1.75; two-sided p = 0.154; "
        "test of equivalence within ±1.0 percentage points: p = 0.700"
    )


def test_a_secondary_comparison_has_its_adjusted_p_too() -> None:
    evidence = wording.evidence({**ROW, "role": "secondary", "p_adjusted": 0.3086})
    assert "two-sided p = 0.154 (adjusted = 0.309)" in evidence
    assert "p = 0.700 (adjusted = 0.900)" in evidence


def test_an_exploratory_comparison_has_no_adjusted_p() -> None:
    assert "adjusted" not in wording.evidence({**ROW, "role": "exploratory"})


def test_the_test_of_equivalence_is_left_out_where_it_had_no_part_in_the_verdict() -> None:
    assert wording.equivalence(ROW)
    assert not wording.equivalence({**ROW, "verdict": "better"})


def test_one_sided_evidence_has_one_bound_and_no_test_of_equivalence() -> None:
    evidence = wording.evidence({**ROW, "alternative": "greater", "ci_high": None})
    assert "95% interval at least −1.2 percentage points" in evidence
    assert "one-sided p" in evidence
    assert "equivalence" not in evidence


def test_without_a_test_the_evidence_gives_what_is_there() -> None:
    nothing = dict.fromkeys(("t", "df", "p", "p_adjusted", "ci_low", "ci_high", "p_equivalence"))
    evidence = wording.evidence({**ROW, **nothing, "n": 1, "verdict": None})
    assert evidence == "mean difference replay minus finetune: +2.0 percentage points; no interval; n = 1 pair"


def test_means_that_were_tested_in_place_of_pairs_are_named() -> None:
    assert "t(4) = 1.75 over the means by order" in wording.evidence({**ROW, "clustered_by": "order"})


def test_failed_runs_are_counted_and_bounded() -> None:
    row = {**ROW, "n_failed_a": 1, "mean_bound_low": -0.1, "mean_bound_high": 0.1}
    assert "failed runs: 1 of replay, 0 of finetune" in wording.evidence(row)
    assert wording.failed_runs(row) == "mean −10.0 to +10.0 percentage points"
    assert wording.failed_runs(ROW) == "no failed run"


@pytest.mark.parametrize(
    ("role", "confirmatory", "verdict", "standing"),
    [
        ("primary", True, "better", "primary, confirmatory"),
        ("secondary", True, "inconclusive", "secondary, confirmatory"),
        ("secondary", False, "better", "secondary, exploratory"),
        ("primary", False, None, "primary, no verdict"),
        ("exploratory", False, "better", "exploratory"),
    ],
)
def test_the_standing_is_the_one_of_the_table(role: str, confirmatory: bool, verdict: str, standing: str) -> None:
    assert wording.standing({**ROW, "role": role, "confirmatory": confirmatory, "verdict": verdict}) == standing


def test_the_other_intervals_are_those_that_are_there() -> None:
    """Simultaneous ones of secondary comparisons alone: of the primary one it is the interval itself."""
    more = {"ci_simultaneous_low": -0.02, "ci_simultaneous_high": 0.06, "bootstrap": "BCa", "bootstrap_low": 0.01}
    found = wording.other_intervals({**ROW, **more, "role": "secondary", "bootstrap_high": 0.03})
    assert found == "simultaneous −2.0 to +6.0; BCa bootstrap +1.0 to +3.0"
    assert wording.other_intervals({**ROW, **more, "bootstrap_low": None}) == "none"


def test_the_worst_task_has_its_bounds() -> None:
    assert wording.worst_task(ROW) == "t2: −10.0 (−30.0 to +10.0) percentage points"
    assert wording.worst_task({**ROW, "worst_task": None}) == "not defined"


@pytest.mark.parametrize("module", [wording, numbers, _describe])
def test_the_examples_in_the_docstrings_run(module: Any) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
