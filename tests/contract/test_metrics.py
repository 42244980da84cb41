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
from palimpsest.metrics._evaluate import declaration, missing, needs, values

every_metric = pytest.mark.parametrize("name", METRICS.names())

NEED_CELLS_ABOVE_THE_DIAGONAL = {"forgetting", "forward_transfer_random_init", "clear_forward", "clear_next_domain"}
FRACTIONS = ("accuracy", "random_init", "isolated", "joint_at_k", "joint", "after_batches", "probe_peak", "probe_end")
# The area beyond Z_0 is a mean of gains of which the first is 0: 1 is approached as β grows.
NOT_ATTAINED = {"learning_curve_gain"}
BATCHES = np.array([0, 1, 2])


def random_inputs(n_tasks: int, *key: int, runs: tuple[int, ...] = ()) -> Inputs:
    draw = generator("tests", n_tasks, *key)
    random = {name: draw.random((*runs, *shape_of(name, n_tasks))) for name in FRACTIONS}
    # An untrained model far enough below joint training, ends that are not above peaks, hits that are not above totals.
    random |= {"random_init": 0.4 * random["random_init"], "joint": 0.5 + 0.5 * random["joint"]}
    random["probe_end"] = random["probe_end"] * random["probe_peak"]
    totals = {name: draw.integers(10, 1000, (*runs, n_tasks)).astype(float) for name in ("n_total", "stream_total")}
    correct = np.floor(draw.random((*runs, n_tasks)) * totals["stream_total"])
    return Inputs(protocol="task_incremental", batches=BATCHES, stream_correct=correct, **random, **totals)


def shape_of(name: str, n_tasks: int) -> tuple[int, ...]:
    return {"accuracy": (n_tasks, n_tasks), "after_batches": (n_tasks, len(BATCHES))}.get(name, (n_tasks,))


def constant_inputs(value: float, n_tasks: int) -> Inputs:
    """Every accuracy is the value."""
    constant = {name: np.full(shape_of(name, n_tasks), value) for name in FRACTIONS}
    counts = {"n_total": 10.0, "stream_total": 10.0, "stream_correct": 10 * value}
    return Inputs(
        protocol="task_incremental",
        batches=BATCHES,
        **{**constant, **{name: np.full(n_tasks, count) for name, count in counts.items()}},
    )


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
    inputs = constant_inputs(0.7, 4)
    if name == "normalized_accuracy":
        # Undefined where all models are alike; as good as joint training is 1.
        inputs, expected = replace(inputs, random_init=np.full(4, 0.2)), 1.0
    assert values(name, inputs) == pytest.approx(expected, abs=1e-15)


@every_metric
def test_a_single_task_gives_a_value_or_says_that_there_are_too_few_tasks(name: str) -> None:
    inputs = random_inputs(1, 0)
    reasons = {None} if declaration(name).min_tasks == 1 else {"T < 2"}
    assert set(missing(name, inputs)) == reasons
    assert np.isnan(values(name, inputs)).all() == (reasons != {None})


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
            if name == "learning_curve_gain":
                # The gain at 0 is 0 whatever was measured there, and yet null where nothing was.
                depends[0] = (need, cell[-1]) == ("after_batches", 0)
            absent = with_cell(inputs, need, cell, np.nan)
            np.testing.assert_array_equal(np.isnan(np.atleast_1d(values(name, absent))), depends)
            number = ",".join(str(at + 1) for at in cell)
            if need == "after_batches":
                number = f"{cell[0] + 1},{BATCHES[cell[1]]}"
            named = f"{'a' if need == 'accuracy' else need}[{number}]"
            assert missing(name, absent) == [named if null else None for null in depends]


def _values_that_depend_on(name: str, need: str, cell: tuple[int, ...]) -> np.ndarray:
    # A maximum hides many cells of one matrix, hence several.
    matrices = [random_inputs(3, key) for key in range(8)]
    # Values that leave the other inputs possible: an end not above its peak, a joint model above the untrained one.
    low, high = {
        "n_total": (1.0, 7.0),
        "stream_total": (1000.0, 2000.0),
        "stream_correct": (0.0, 1.0),
        "random_init": (0.0, 0.3),
        "joint": (0.5, 1.0),
    }.get(need, (0.0, 1.0))
    ends = [[values(name, with_cell(inputs, need, cell, end)) for end in (low, high)] for inputs in matrices]
    return np.atleast_1d(np.any([one != other for one, other in ends], axis=0))


@every_metric
def test_without_an_input_a_metric_is_null_and_says_what_is_missing(name: str) -> None:
    bare = Inputs(accuracy=random_inputs(3, 3).accuracy, protocol="task_incremental")
    reasons = {
        "n_total": "no numbers of test samples",
        "joint_at_k": "no reference run joint",
        **{need: f"no reference run {need}" for need in ("joint", "isolated", "random_init")},
        **dict.fromkeys(("batches", "after_batches", "probe_peak", "probe_end"), "not probed"),
        **dict.fromkeys(("stream_correct", "stream_total"), "no stream"),
    }
    expected = "; ".join(dict.fromkeys(reasons[need] for need in needs(name) if need != "accuracy"))
    assert set(missing(name, bare)) == {expected or None}


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
        inputs = replace(inputs, probe_end=np.minimum(inputs.probe_end, inputs.probe_peak))
    low, high = declaration(name).range
    result = values(name, inputs)
    assert np.all(np.isnan(result) | ((low - 1e-12 <= result) & (result <= high + 1e-12)))


@every_metric
def test_the_declared_range_is_attained_at_both_ends(name: str) -> None:
    corners = itertools.product((0.0, 1.0), repeat=6)
    references = [(0.0, 1.0), (1.0, 0.0), (0.95, 1.0), (0.0, 0.05)]
    seen = [values(name, _two_tasks(*corner, *ends)) for corner, ends in itertools.product(corners, references)]
    low, high = declaration(name).range
    if name in NOT_ATTAINED:
        assert low < np.nanmin(seen) < 0 < np.nanmax(seen) < high
    else:
        assert (np.nanmin(seen), np.nanmax(seen)) == pytest.approx((low, high), abs=1e-12)


def _two_tasks(
    a11: float, a12: float, a21: float, a22: float, isolated: float, first: float, random_init: float, joint: float
) -> Inputs:
    return Inputs(
        accuracy=np.array([[a11, a12], [a21, a22]]),
        protocol="task_incremental",
        n_total=np.array([10.0, 20.0]),
        random_init=np.full(2, random_init),
        isolated=np.full(2, isolated),
        joint_at_k=np.full(2, joint),
        joint=np.full(2, joint),
        batches=np.array([0, 1]),
        after_batches=np.array([[first, a11], [first, a22]]),
        probe_peak=np.array([max(a11, a21), a22]),
        probe_end=np.array([a21, a22]),
        stream_correct=np.array([10 * a11, 10 * a22]),
        stream_total=np.array([10.0, 10.0]),
    )


@every_metric
def test_the_declared_direction_prefers_a_learner_that_learns_and_keeps_everything(name: str) -> None:
    references = replace(constant_inputs(0.5, 4), random_init=np.full(4, 0.1))
    forgetful = np.full((4, 4), 0.1) + np.diag([0.5] * 4)
    quick, slow = np.tile([0.2, 0.9, 1.0], (4, 1)), np.tile([0.2, 0.2, 0.3], (4, 1))
    peak, count = np.ones(4), np.full(4, 10.0)
    good = values(
        name,
        replace(references, accuracy=np.ones((4, 4)), after_batches=quick, probe_peak=peak, stream_correct=count),
    )
    good_end = replace(references, probe_peak=peak, probe_end=peak)
    good = values(name, good_end) if name == "forgetting_at_peak" else good
    bad = values(name, replace(references, accuracy=forgetful, after_batches=slow, probe_peak=peak))
    assert np.all(good >= bad if declaration(name).direction == "higher" else good <= bad)
    assert np.any(good != bad)


@every_metric
def test_runs_computed_together_equal_runs_computed_one_by_one(name: str) -> None:
    together = random_inputs(4, 6, runs=(2, 3))
    result = values(name, together)
    for run in np.ndindex(2, 3):
        alone = replace(together, **{field: array[run] for field, array in together.arrays().items()})
        np.testing.assert_array_equal(result[run], values(name, alone))


@every_metric
def test_a_matrix_with_a_repeated_task_gives_only_what_needs_the_last_row(name: str) -> None:
    inputs = random_inputs(3, 7)
    longer = {"accuracy": inputs.accuracy, "after_batches": inputs.after_batches}
    longer |= {"stream_correct": inputs.stream_correct, "stream_total": inputs.stream_total}
    repeated = replace(inputs, **{need: np.concatenate([array[:1], array]) for need, array in longer.items()})
    if name == "prequential_accuracy":
        assert missing(name, repeated) == [None]
    elif declaration(name).square:
        assert set(missing(name, repeated)) == {"not as many stages as tasks"}
    else:
        np.testing.assert_array_equal(values(name, repeated), values(name, inputs))


@every_metric
def test_percentages_are_not_guessed_to_be_fractions_where_all_of_them_are_small(name: str) -> None:
    """A matrix of 0.4 and 0.9 percent cannot be told from fractions; one value above 1 is enough to refuse it."""
    inputs = random_inputs(3, 9)
    with pytest.raises(MatrixError):
        replace(inputs, accuracy=with_cell(inputs, "accuracy", (2, 2), 1.01).accuracy)


@every_metric
def test_the_mean_over_runs_is_the_metric_of_the_mean_matrix_only_for_linear_formulas(name: str) -> None:
    """So matrices must never be averaged first, where a maximum, a clip or a quotient of measurements is involved."""
    together = random_inputs(3, 10, runs=(8,))
    means = {field: array.mean(axis=0) for field, array in together.arrays().items()}
    means |= {field: means[field].round() for field in ("n_total", "stream_correct", "stream_total")}
    same = np.allclose(values(name, together).mean(axis=0), values(name, replace(together, **means)))
    assert same == (name not in NOT_LINEAR)


# A maximum, a clip, or a quotient of measured numbers. (The peak of forgetting_at_peak is taken before it comes in.)
NOT_LINEAR = {
    "forgetting",
    "forgetting_since_learned",
    "forgetting_clipped",
    "worst_task_drop",
    "normalized_accuracy",
    "overall_accuracy",
    "prequential_accuracy",
}


@every_metric
def test_names_of_tasks_are_no_input(name: str) -> None:
    """Tasks are positions here; that they may bear other names is tested where names come in (test_metrics)."""
    assert not {"task", "tasks", "names"} & set(needs(name))


@pytest.mark.parametrize("name", [name for name in METRICS.names() if not declaration(name).square])
def test_metrics_of_the_last_row_do_not_depend_on_the_order_of_the_tasks(name: str) -> None:
    inputs = random_inputs(4, 8)
    order = np.array([2, 0, 3, 1])
    permuted = {need: array[..., order] for need, array in inputs.arrays().items() if need != "after_batches"}
    expected = values(name, inputs)[order] if declaration(name).index == "task" else values(name, inputs)
    assert values(name, replace(inputs, **permuted)) == pytest.approx(expected, abs=1e-15)


def test_normalized_accuracy_is_undefined_where_joint_training_is_hardly_better_than_none() -> None:
    inputs = replace(random_inputs(2, 11), random_init=np.array([0.1, 0.5]), joint=np.array([0.9, 0.549]))
    assert np.isnan(values("normalized_accuracy", inputs))
    assert missing("normalized_accuracy", inputs) == ["joint − random_init is below 0.05 on a task"]
    at_the_floor = replace(inputs, joint=np.array([0.9, 0.55]))
    assert missing("normalized_accuracy", at_the_floor) == [None]


def test_an_area_goes_as_far_as_every_mini_batch_was_probed_and_by_trapezia_to_the_end() -> None:
    curve = np.array([[0.2, 0.4, 0.6, 0.8], [0.2, 0.4, 0.6, 0.8]])
    inputs = replace(random_inputs(2, 12), batches=np.array([0, 1, 2, 6]), after_batches=curve)
    assert values("learning_curve_area", inputs) == pytest.approx([0.2, 0.3, 0.4])
    assert values("learning_curve_area_trapezoid", inputs) == pytest.approx([0.2, 0.3, 0.4, (0.8 + 2.8) / 6])
    assert values("b_shot", inputs) == pytest.approx([0.2, 0.4, 0.6, 0.8])


def test_a_task_with_fewer_mini_batches_makes_what_comes_after_its_last_one_null() -> None:
    inputs = with_cell(random_inputs(3, 13), "after_batches", (1, 2), np.nan)
    for name in ("b_shot", "learning_curve_area", "learning_curve_gain", "learning_curve_area_trapezoid"):
        assert missing(name, inputs) == [None, None, "after_batches[2,2]"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batches": np.array([1, 2, 3])}, "0 first"),
        ({"batches": np.array([0, 2, 2])}, "increasing"),
        ({"batches": None}, "together"),
        ({"batches": np.array([0, 1])}, "2 values along the last axis"),
        ({"after_batches": np.zeros((2, 3))}, "3 stages"),
        ({"stream_correct": np.full(3, 5000.0)}, "at most as many"),
        ({"stream_total": np.full(3, 0.5)}, "whole numbers"),
        ({"probe_end": np.zeros(2)}, "3 values along the last axis"),
    ],
)
def test_probes_and_streams_that_contradict_themselves_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(MatrixError) as error:
        replace(random_inputs(3, 14), **changes)
    assert message in str(error.value)
