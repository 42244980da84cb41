"""What every metric promises, checked for each file in `palimpsest/metrics`."""

from __future__ import annotations

import doctest
import inspect
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palimpsest.core.errors import MatrixError
from palimpsest.core.streams import generator
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Inputs, Metric
from palimpsest.metrics._describe import describe
from palimpsest.metrics._evaluate import declaration, missing, values

every_metric = pytest.mark.parametrize("name", METRICS.names())

NEED_CELLS_ABOVE_THE_DIAGONAL = {"forgetting", "forward_transfer_random_init", "clear_forward", "clear_next_domain"}
FRACTIONS = ("accuracy", "random_init", "isolated", "joint_at_k", "joint")


def random_inputs(n_tasks: int, *key: int, runs: tuple[int, ...] = ()) -> Inputs:
    draw = generator("tests", n_tasks, *key)
    return Inputs(
        accuracy=draw.random((*runs, n_tasks, n_tasks)),
        protocol="task_incremental",
        n_total=draw.integers(1, 1000, n_tasks).astype(float),
        **{name: draw.random((*runs, n_tasks)) for name in FRACTIONS[1:]},
    )


def constant_inputs(value: float, n_tasks: int) -> Inputs:
    rows = {name: np.full(n_tasks, value) for name in FRACTIONS[1:]}
    matrix = np.full((n_tasks, n_tasks), value)
    return Inputs(accuracy=matrix, protocol="task_incremental", n_total=np.full(n_tasks, 10.0), **rows)


def with_cell(inputs: Inputs, name: str, cell: tuple[int, ...], value: float) -> Inputs:
    array = getattr(inputs, name).copy()
    array[cell] = value
    return replace(inputs, **{name: array})


@every_metric
def test_a_metric_says_what_it_is_where_it_comes_from_and_gives_an_example_that_runs(name: str) -> None:
    module = METRICS.load(name, "test")
    function = getattr(module, name)
    assert isinstance(module.METRIC, Metric)
    assert len(module.REFERENCE) > 20
    assert "divisor" in function.__doc__
    assert f"{module.METRIC.direction} is better" in function.__doc__
    outcome = doctest.DocTestRunner().run(doctest.DocTestFinder().find(function, name, globs={**vars(module)})[0])
    assert outcome.attempted > 0
    assert outcome.failed == 0


@every_metric
def test_a_metric_is_described_in_words_of_its_own(name: str) -> None:
    described = describe(name)
    assert "_" not in described.label
    assert "divisor" in described.definition
    assert not {">>>", "`", "\n"} & {*described.definition, *described.definition.split()}
    assert [other for other in METRICS.names() if describe(other).label == described.label] == [name]


@every_metric
def test_every_parameter_names_an_input(name: str) -> None:
    parameters = inspect.signature(getattr(METRICS.load(name, "test"), name)).parameters
    assert parameters.keys() <= Inputs.__dataclass_fields__.keys()


@every_metric
def test_on_a_constant_matrix_an_accuracy_is_the_constant_and_a_difference_is_zero(name: str) -> None:
    expected = 0.7 if declaration(name).is_accuracy else 0.0
    assert values(name, constant_inputs(0.7, 4)) == pytest.approx(expected, abs=1e-15)


@every_metric
def test_a_single_task_gives_a_value_or_says_that_there_are_too_few_tasks(name: str) -> None:
    inputs = constant_inputs(0.7, 1)
    reasons = [None] if declaration(name).min_tasks == 1 else ["T < 2"]
    assert missing(name, inputs) == reasons
    assert np.isnan(values(name, inputs)).all() == (reasons != [None])


@every_metric
def test_without_the_upper_triangle_a_metric_is_null_or_does_not_depend_on_it(name: str) -> None:
    inputs = random_inputs(4, 1)
    upper = np.triu_indices(4, 1)
    without = replace(inputs, accuracy=inputs.accuracy.copy())
    without.accuracy[upper] = np.nan
    if name in NEED_CELLS_ABOVE_THE_DIAGONAL:
        assert np.isnan(values(name, without)).all()
        assert all("a[1,2]" in reason for reason in missing(name, without))
    else:
        np.testing.assert_array_equal(values(name, without), values(name, inputs))


@every_metric
def test_an_absent_cell_makes_null_exactly_the_values_that_depend_on_it(name: str) -> None:
    inputs = random_inputs(3, 2)
    for need, array in inputs.arrays().items():
        for cell in np.ndindex(array.shape):
            depends = _values_that_depend_on(name, need, cell)
            absent = with_cell(inputs, need, cell, np.nan)
            np.testing.assert_array_equal(np.isnan(np.atleast_1d(values(name, absent))), depends)
            number = ",".join(str(at + 1) for at in cell)
            named = f"{'a' if need == 'accuracy' else need}[{number}]"
            assert missing(name, absent) == [named if null else None for null in depends]


def _values_that_depend_on(name: str, need: str, cell: tuple[int, ...]) -> np.ndarray:
    # A maximum hides many cells of one matrix, hence several.
    matrices = [random_inputs(3, key) for key in range(8)]
    low, high = (1.0, 7.0) if need == "n_total" else (0.0, 1.0)
    ends = [[values(name, with_cell(inputs, need, cell, end)) for end in (low, high)] for inputs in matrices]
    return np.atleast_1d(np.any([one != other for one, other in ends], axis=0))


@every_metric
def test_without_its_reference_run_a_metric_is_null_and_says_which_run_is_missing(name: str) -> None:
    bare = Inputs(accuracy=random_inputs(3, 3).accuracy, protocol="task_incremental")
    needs = set(inspect.signature(getattr(METRICS.load(name, "test"), name)).parameters) - {"accuracy"}
    reasons = {
        "n_total": "no numbers of test samples",
        "joint_at_k": "no reference run joint",
        **{need: f"no reference run {need}" for need in ("joint", "isolated", "random_init")},
    }
    assert set(missing(name, bare)) == ({reasons[need] for need in needs} or {None})


@every_metric
@pytest.mark.parametrize("field", FRACTIONS)
def test_percent_is_refused(name: str, field: str) -> None:
    percent = {field: getattr(random_inputs(3, 4), field) * 100}
    with pytest.raises(MatrixError, match="accuracy matrix"):
        values(name, replace(random_inputs(3, 4), **percent))


@every_metric
def test_the_input_is_not_changed_and_the_result_does_not_share_its_memory(name: str) -> None:
    inputs = random_inputs(4, 5)
    before = {need: array.copy() for need, array in inputs.arrays().items()}
    result = values(name, inputs)
    for need, array in inputs.arrays().items():
        np.testing.assert_array_equal(array, before[need])
        assert not np.shares_memory(result, array)


@every_metric
@given(n_tasks=st.integers(2, 6), key=st.integers(0, 10**6), rounded=st.booleans())
@settings(max_examples=30, deadline=None)
def test_values_lie_in_the_declared_range(name: str, n_tasks: int, key: int, rounded: bool) -> None:
    inputs = random_inputs(n_tasks, key)
    if rounded:
        inputs = replace(inputs, **{field: getattr(inputs, field).round() for field in FRACTIONS})
    low, high = declaration(name).range
    result = values(name, inputs)
    assert np.all((low - 1e-12 <= result) & (result <= high + 1e-12))


@every_metric
def test_the_declared_range_is_attained_at_both_ends(name: str) -> None:
    corners = itertools.product((0.0, 1.0), repeat=7)
    seen = [values(name, _two_tasks(*corner)) for corner in corners]
    assert (np.min(seen), np.max(seen)) == declaration(name).range


def _two_tasks(a11: float, a12: float, a21: float, a22: float, random_init: float, isolated: float, joint: float):
    return Inputs(
        accuracy=np.array([[a11, a12], [a21, a22]]),
        protocol="task_incremental",
        n_total=np.array([10.0, 20.0]),
        random_init=np.full(2, random_init),
        isolated=np.full(2, isolated),
        joint_at_k=np.full(2, joint),
        joint=np.full(2, joint),
    )


@every_metric
def test_the_declared_direction_prefers_a_learner_that_learns_and_keeps_everything(name: str) -> None:
    references = constant_inputs(0.5, 4)
    forgetful = np.full((4, 4), 0.1) + np.diag([0.5] * 4)
    good = values(name, replace(references, accuracy=np.ones((4, 4))))
    bad = values(name, replace(references, accuracy=forgetful))
    assert np.all(good >= bad if declaration(name).direction == "higher" else good <= bad)
    assert np.any(good != bad)


@every_metric
def test_runs_computed_together_equal_runs_computed_one_by_one(name: str) -> None:
    together = random_inputs(4, 6, runs=(2, 3))
    result = values(name, together)
    for run in np.ndindex(2, 3):
        alone = replace(together, **{field: getattr(together, field)[run] for field in FRACTIONS})
        np.testing.assert_array_equal(result[run], values(name, alone))


@every_metric
def test_a_matrix_with_a_repeated_task_gives_only_what_needs_the_last_row(name: str) -> None:
    inputs = random_inputs(3, 7)
    repeated = replace(inputs, accuracy=np.vstack([inputs.accuracy[:1], inputs.accuracy]))
    if declaration(name).square:
        assert set(missing(name, repeated)) == {"not as many stages as tasks"}
    else:
        np.testing.assert_array_equal(values(name, repeated), values(name, inputs))


@pytest.mark.parametrize("name", [name for name in METRICS.names() if not declaration(name).square])
def test_metrics_of_the_last_row_do_not_depend_on_the_order_of_the_tasks(name: str) -> None:
    inputs = random_inputs(4, 8)
    order = np.array([2, 0, 3, 1])
    permuted = {need: array[..., order] for need, array in inputs.arrays().items()}
    expected = values(name, inputs)[order] if declaration(name).index == "task" else values(name, inputs)
    assert values(name, replace(inputs, **permuted)) == pytest.approx(expected, abs=1e-15)
