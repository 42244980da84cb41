"""The worst task, the disparity between orders, and gates."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
from palimpsest.core.errors import StudyError
from palimpsest.statistics.gates import failed_gates
from palimpsest.statistics.order_disparity import order_disparity
from palimpsest.statistics.worst_task import worst_task_change
from scipy import stats


def test_a_task_without_any_pair_leaves_the_worst_task_undefined() -> None:
    assert worst_task_change({"a": np.array([0.1, 0.2]), "b": np.array([np.nan, np.nan])}, 0.05).change is None


def test_the_bounds_of_the_worst_task_are_those_of_bonferroni() -> None:
    values = np.array([0.1, -0.2, -0.3])
    worst = worst_task_change({"a": values, "b": np.zeros(3)}, 0.05)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(1 - 0.05 / 2)
    assert (worst.task, worst.ci_low, worst.ci_high) == ("a", pytest.approx(expected.low), pytest.approx(expected.high))


def test_order_disparity_is_null_where_a_run_has_no_final_accuracy() -> None:
    finals = {"o0": {"s0": {"t": 0.5}, "s1": {"t": None}}, "o1": {"s0": {"t": 0.5}, "s1": {"t": 0.5}}}
    found = order_disparity(finals)
    assert (found.maximum, found.reason) == (None, "no final accuracy: t in s1-o0")


def test_a_gate_on_an_undefined_quantity_fails() -> None:
    assert failed_gates(["a.mean > 0", "b.mean > 0"], {"a": {"mean": None}}) == ["a.mean > 0", "b.mean > 0"]


def test_a_gate_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(StudyError, match="gate cannot be read"):
        failed_gates(["a.mean = 0"], {})


@pytest.mark.parametrize("module", ["verdict", "wilcoxon", "compare", "gates"])
def test_the_examples_in_the_docstrings_run(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"palimpsest.statistics.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
