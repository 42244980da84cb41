"""What every benchmark promises, on its real data."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from palimpsest.benchmarks import BENCHMARKS
from palimpsest.core.errors import StudyError
from palimpsest.data.splits import SPLITS
from tiny import example


def options(name: str, **changes):
    """Options of a benchmark as its file gives examples of them."""
    module = BENCHMARKS.load(name, "")
    return module.Options.model_validate(example(module.Options) | changes)


@pytest.fixture(scope="module", params=BENCHMARKS.names())
def made(request):
    """A benchmark's module, options, what it tells of itself, and its samples."""
    module = BENCHMARKS.load(request.param, "")
    chosen = options(request.param)
    return module, chosen, module.describe(chosen, "study.yaml:1"), module.build(chosen, 0)


def test_a_benchmark_declares_itself(made):
    """The file has a reference and a docstring; every option is explained."""
    module, chosen, _, _ = made
    assert module.REFERENCE
    assert module.__doc__
    assert all(field.description for field in type(chosen).model_fields.values())


def test_counts_are_as_described(made):
    """Each task has as many samples in each split as the description says."""
    _, _, told, samples = made
    counts = Counter(zip(samples.task, samples.split, strict=True))
    assert counts == {(task, split): facts[f"n_{split}"] for task, facts in told["tasks"].items() for split in SPLITS}


def test_classes_are_as_described(made):
    """Each task has the outputs that the description says, each of them in every split, and no output is left over."""
    _, _, told, samples = made
    found = {}
    for task, split, label in zip(samples.task, samples.split, samples.label.tolist(), strict=True):
        found.setdefault((task, split), set()).add(label)
    assert found == {(task, split): set(facts["classes"]) for task, facts in told["tasks"].items() for split in SPLITS}
    assert sorted({label for facts in told["tasks"].values() for label in facts["classes"]}) == list(
        range(told["inputs"]["n_outputs"])
    )


def test_inputs_are_as_described(made):
    """Shape and bytes of the inputs are those of the description; a label fits into its bytes."""
    _, _, told, samples = made
    assert samples.inputs.dtype == np.uint8
    assert list(samples.inputs.shape[1:]) == told["inputs"]["shape"]
    assert samples.inputs[0].nbytes == told["inputs"]["sample_bytes"]
    assert samples.label.max() < 256 ** told["inputs"]["label_bytes"]
    assert set(samples.sources) == set(told["sources"])


def test_label_tells_task_if_it_is_said(made):
    """Where the label tells the task, no label stands in two tasks."""
    _, _, told, samples = made
    pairs = set(zip(samples.label.tolist(), samples.task, strict=True))
    assert (len(pairs) == len({label for label, _ in pairs})) == told["inputs"]["label_tells_task"]


def test_sample_ids_ascend(made):
    """The id of a sample is unique, and ids ascend."""
    assert (np.diff(made[3].sample) > 0).all()


def test_building_twice_is_the_same(made):
    """The same options and seed give the same samples, to the byte."""
    module, chosen, _, first = made
    second = module.build(chosen, 0)
    assert first.inputs.tobytes() == second.inputs.tobytes()
    assert (first.split, first.task) == (second.split, second.task)
    assert first.sample.tolist() == second.sample.tolist()
    assert first.label.tolist() == second.label.tolist()


def test_the_seed_decides_the_split(made):
    """Another seed puts other samples into the test split."""
    module, chosen, _, first = made
    second = module.build(chosen, 1)
    tests = [
        {s for s, split in zip(m.sample.tolist(), m.split, strict=True) if split == "test"} for m in (first, second)
    ]
    assert tests[0] != tests[1]


def test_inputs_belong_to_their_ids():
    """The input of a sample of `split` is the row of the data set that its id names; so is its class."""
    from palimpsest.data.samples import load_source

    chosen = options("split", n_tasks=2, classes_per_task=3, class_order="shuffled")
    samples = BENCHMARKS.load("split", "").build(chosen, 5)
    inputs, classes = load_source("mnist5k")
    assert np.array_equal(samples.inputs, inputs[samples.sample])
    pairs = set(zip(samples.label.tolist(), classes[samples.sample].tolist(), strict=True))
    assert len(pairs) == 6
    assert sorted(pairs) != [(n, n) for n in range(6)]


def test_shuffled_classes_follow_the_seed():
    """With `class_order: shuffled` the seed decides which class is dealt to which output; `natural` has none."""
    split = BENCHMARKS.load("split", "")
    dealt = [split._output_of_class(options("split", class_order="shuffled"), seed) for seed in (0, 1)]
    assert dealt[0] != dealt[1]
    assert split._output_of_class(options("split"), 7) == {n: n for n in range(10)}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"n_tasks": 6}, "too few classes"),
        ({"samples_per_class": {"train": 400, "validation": 50, "test": 100}}, "too few samples per class"),
        ({"dataset": "mnist5"}, "no data source named 'mnist5'"),
    ],
)
def test_a_benchmark_that_cannot_be_built_is_refused(changes, what):
    """More classes or samples than there are, and a data set that does not exist, are refused at locking."""
    with pytest.raises(StudyError, match=what):
        BENCHMARKS.load("split", "").describe(options("split", **changes), "study.yaml:1")
