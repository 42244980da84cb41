"""The worst task, the disparity between orders, and gates."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
from scipy import stats

from palimpsest.core.errors import StudyError
from palimpsest.core.streams import generator
from palimpsest.plan.gates import read_gate
from palimpsest.statistics import wilcoxon
from palimpsest.statistics.gates import judge_gate
from palimpsest.statistics.order_bootstrap import worst_quantile_interval
from palimpsest.statistics.order_disparity import order_disparity
from palimpsest.statistics.orders import FinalAccuracy, order_rows
from palimpsest.statistics.variance import split_variance
from palimpsest.statistics.wilcoxon import wilcoxon_p
from palimpsest.statistics.worst_task import worst_task_change


def test_a_task_without_any_pair_leaves_the_worst_task_undefined() -> None:
    assert worst_task_change({"a": np.array([0.1, 0.2]), "b": np.array([np.nan, np.nan])}, 0.05).change is None


def test_the_bounds_of_the_worst_task_are_those_of_bonferroni() -> None:
    values = np.array([0.1, -0.2, -0.3])
    worst = worst_task_change({"a": values, "b": np.zeros(3)}, 0.05)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(1 - 0.05 / 2)
    assert (worst.task, worst.ci_low, worst.ci_high) == ("a", pytest.approx(expected.low), pytest.approx(expected.high))


def test_order_disparity_is_null_where_a_run_has_no_final_accuracy() -> None:
    given = {"o0": {"s0": {"t": 0.5}, "s1": {"t": None}}, "o1": {"s0": {"t": 0.5}, "s1": {"t": 0.5}}}
    found = order_disparity(given)
    assert (found.maximum, found.reason) == (None, "no final accuracy: t in s1-o0")


def finals(values: dict[tuple[int, str], dict[str, float | None]]) -> list[FinalAccuracy]:
    """By seed and order; the order `ab` has task a first."""
    return [
        FinalAccuracy("replay", "p", task, seed, order, order.index(task) + 1, value)
        for (seed, order), by_task in values.items()
        for task, value in by_task.items()
    ]


TWO_BY_TWO = finals(
    {
        (0, "ab"): {"a": 0.80, "b": 0.60},
        (1, "ab"): {"a": 0.84, "b": 0.64},
        (0, "ba"): {"a": 0.70, "b": 0.66},
        (1, "ba"): {"a": 0.74, "b": 0.70},
    }
)


def find(rows: list[dict], **where: str | None) -> dict:
    (row,) = [row for row in rows if all(row[column] == value for column, value in where.items())]
    return row


def test_a_task_is_described_over_all_runs_by_order_and_by_position() -> None:
    rows = order_rows(TWO_BY_TWO)
    everything = find(rows, task="a", by="all")
    assert (everything["n"], everything["mean"], everything["worst"]) == (4, pytest.approx(0.77), 0.70)
    assert find(rows, task="a", by="order", level="ba")["mean"] == pytest.approx(0.72)
    assert find(rows, task="b", by="position", level="1")["mean"] == pytest.approx(0.68)


def test_disparities_stand_beside_the_task_and_their_maximum_and_mean_in_rows_without_one() -> None:
    rows = order_rows(TWO_BY_TWO)
    assert find(rows, task="a", by="all")["order_disparity"] == pytest.approx(0.10)
    assert find(rows, task=None, by="maximum")["order_disparity"] == pytest.approx(0.10)
    assert find(rows, task=None, by="mean")["order_disparity"] == pytest.approx(0.08)


def test_one_seed_per_order_leaves_the_disparity_null_and_says_why() -> None:
    rows = order_rows(finals({(0, "ab"): {"a": 0.8}, (1, "ba"): {"a": 0.7}}))
    row = find(rows, task="a", by="all")
    assert (row["n"], row["order_disparity"]) == (2, None)
    assert row["missing"].startswith("one seed per order")


def test_a_failed_run_does_not_count_into_the_description() -> None:
    row = find(order_rows(finals({(0, "ab"): {"a": None}, (1, "ab"): {"a": 0.5}})), task="a", by="all")
    assert (row["n"], row["mean"], row["sd"]) == (1, 0.5, None)


def test_the_position_curve_is_there_for_all_tasks_together() -> None:
    rows = order_rows(TWO_BY_TWO)
    assert find(rows, by="any task by position", level="1")["mean"] == pytest.approx((0.80 + 0.84 + 0.66 + 0.70) / 4)


def test_the_variance_is_split_into_order_seed_and_rest() -> None:
    """Task a: two orders 10 points apart, two seeds 4 points apart, and nothing else."""
    rows = order_rows(TWO_BY_TWO)
    found = {source: find(rows, task="a", by="variance", level=source) for source in ("order", "seed", "rest")}
    variances = [row["variance"] for row in found.values()]
    assert variances == pytest.approx([0.10**2 / 2, 0.04**2 / 2, 0.0], abs=1e-12)
    assert [row["df"] for row in found.values()] == [1, 1, 1]
    assert found["order"]["variance_share"] == pytest.approx(0.10**2 / (0.10**2 + 0.04**2))


def test_variance_components_are_those_of_statsmodels_anova() -> None:
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    values = generator("tests", "anova").random((3, 4)) + np.arange(3)[:, None]
    orders, seeds = np.repeat(list("abc"), 4).tolist(), np.tile(np.arange(4), 3).tolist()
    table = pd.DataFrame({"value": values.ravel(), "order": orders, "seed": seeds})
    squares = anova_lm(ols("value ~ C(order) + C(seed)", table).fit())["mean_sq"]
    components, _ = split_variance(values.ravel().tolist(), seeds, orders)
    assert components["rest"].variance == pytest.approx(squares["Residual"])
    assert components["order"].variance == pytest.approx((squares["C(order)"] - squares["Residual"]) / 4)
    assert components["seed"].variance == pytest.approx(max(squares["C(seed)"] - squares["Residual"], 0) / 3)


@pytest.mark.parametrize(
    ("values", "seeds", "orders", "reason"),
    [
        ([0.1, 0.2], [0, 1], ["a", "b"], "each seed has an order of its own"),
        ([0.1, 0.2], [0, 1], ["a", "a"], "fewer than two orders"),
        ([0.1, 0.2], [0, 0], ["a", "b"], "fewer than two seeds"),
        ([0.1, 0.2, 0.3], [0, 1, 0], ["a", "a", "b"], "not every seed was run with every order"),
        ([0.1, 0.2, 0.3, None], [0, 1, 0, 1], ["a", "a", "b", "b"], "no final accuracy of 1 of 4 runs"),
    ],
)
def test_a_variance_that_cannot_be_split_is_null_with_its_reason(
    values: list, seeds: list, orders: list, reason: str
) -> None:
    components, found = split_variance(values, seeds, orders)
    assert (components, found[: len(reason)]) == ({}, reason)


def test_a_confounded_variance_stands_in_the_table_as_null() -> None:
    row = find(order_rows(finals({(0, "ab"): {"a": 0.8}, (1, "ba"): {"a": 0.7}})), by="variance", level="seed")
    assert (row["variance"], row["n"]) == (None, 2)
    assert row["missing"].startswith("each seed has an order of its own")


def test_the_worst_quantile_is_resampled_within_orders() -> None:
    """Two runs per order that hardly differ: the interval lies at the worse order, though the other is far away."""
    low, high = worst_quantile_interval(np.array([0.30, 0.32, 0.8, 0.9]), list("aabb"), 0.05, generator("tests", "q"))
    assert low == pytest.approx(0.30)
    assert high <= 0.32 + 0.15 * 0.5


def test_the_worst_quantile_has_its_footnote_or_a_reason() -> None:
    row = find(order_rows(TWO_BY_TWO), task="a", by="all")
    assert 0.70 <= row["worst_quantile_low"] <= row["worst_quantile_high"] <= 0.75
    assert "in simulations with 5 runs the 95 % interval covered" in row["note"]
    assert row["missing"] is None
    alone = find(order_rows(finals({(0, "ab"): {"a": 0.8}, (1, "ba"): {"a": 0.7}})), task="a", by="all")
    assert (alone["worst_quantile_low"], alone["n"]) == (None, 2)
    assert "an order with a single run cannot be resampled" in alone["missing"]


def test_a_gate_on_an_undefined_quantity_fails_and_says_so() -> None:
    gates = [read_gate(f"{name}.mean > 0", "here") for name in ("a", "b")]
    judged = [judge_gate(gate, {"a": {"mean": None, "reason": "fewer than two pairs"}}) for gate in gates]
    assert [found.passed for found in judged] == [False, False]
    assert [found.reason for found in judged] == ["mean is null: fewer than two pairs", "mean is null"]


@pytest.mark.parametrize(
    ("operator", "passes"), [(">=", [0, 1]), ("<=", [-1, 0]), (">", [1]), ("<", [-1]), ("≥", [0, 1]), ("≤", [-1, 0])]
)
def test_a_gate_compares_as_its_operator_says(operator: str, passes: list[int]) -> None:
    gate = read_gate(f"a.mean {operator} 0", "here")
    assert [value for value in (-1, 0, 1) if judge_gate(gate, {"a": {"mean": value}}).passed] == passes


@pytest.mark.parametrize("text", ["a.mean = 0", "a > 0", "mean > 0", "a.mean > two", "a.mean > 0 or 1", "", "a.mean >"])
def test_a_gate_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(StudyError, match="gate cannot be read"):
        read_gate(text, "here")


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_signed_rank_test_of_many_pairs_is_close_to_the_counted_one(alternative, monkeypatch) -> None:
    """With 300 rounded differences, ties and zeros among them, the normal distribution is off by less than 0.001."""
    differences = np.round(generator("test", "wilcoxon").normal(0.08, 1, 300), 1)
    counted = wilcoxon_p(differences, alternative)
    monkeypatch.setattr(wilcoxon, "COUNTED_UP_TO", 0)
    assert wilcoxon_p(differences, alternative) == pytest.approx(counted, abs=0.001)


@pytest.mark.parametrize("module", ["wilcoxon", "comparisons", "gates", "orders"])
def test_the_examples_in_the_docstrings_run(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"palimpsest.statistics.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
