"""What every benchmark promises, on its real data."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from palimpsest.benchmarks import BENCHMARKS
from palimpsest.benchmarks.rotated import rotation
from palimpsest.core.errors import StudyError
from palimpsest.core.inputs import Inputs
from palimpsest.data.raw import load_source
from palimpsest.data.sources import SOURCES
from palimpsest.data.splits import SPLITS
from raw_files import N_TEST, N_TRAIN, write_raw_files
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
    return module, chosen, module.describe(chosen, 0, "study.yaml:1"), module.build(chosen, 0, load_source)


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
    """Shape and bytes of the inputs are those of the description; a label fits into its bytes; each input is used."""
    _, _, told, samples = made
    assert set(samples.input.tolist()) == set(range(len(samples.inputs)))
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
    second = module.build(chosen, 0, load_source)
    assert first.inputs.tobytes() == second.inputs.tobytes()
    assert first.input.tolist() == second.input.tolist()
    assert {k: v.tolist() for k, v in first.moves.items()} == {k: v.tolist() for k, v in second.moves.items()}
    assert (first.split, first.task) == (second.split, second.task)
    assert first.sample.tolist() == second.sample.tolist()
    assert first.label.tolist() == second.label.tolist()


def test_the_seed_decides_the_split(made):
    """Another seed puts other samples into the test split."""
    module, chosen, _, first = made
    second = module.build(chosen, 1, load_source)
    tests = [
        {s for s, split in zip(m.sample.tolist(), m.split, strict=True) if split == "test"} for m in (first, second)
    ]
    assert tests[0] != tests[1]


def test_inputs_belong_to_their_ids():
    """The input of a sample of `split` is the row of the data set that its id names; so is its class."""
    chosen = options("split", n_tasks=2, classes_per_task=3, class_order="shuffled")
    samples = BENCHMARKS.load("split", "").build(chosen, 5, load_source)
    inputs, classes = load_source("mnist5k")
    assert np.array_equal(samples.inputs[samples.input], inputs[samples.sample])
    pairs = set(zip(samples.label.tolist(), classes[samples.sample].tolist(), strict=True))
    assert len(pairs) == 6
    assert sorted(pairs) != [(n, n) for n in range(6)]


def test_shuffled_classes_follow_the_seed():
    """With `class_order: shuffled` the seed decides which class is dealt to which output; `natural` has none."""
    split = BENCHMARKS.load("split", "")
    dealt = [split._dealt(options("split", class_order="shuffled"), seed) for seed in (0, 1)]
    assert dealt[0] != dealt[1]
    assert split._dealt(options("split"), 7) == list(range(10))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"n_tasks": 6}, "too few classes"),
        ({"samples_per_class": {"train": 400, "validation": 50, "test": 100}}, "too few samples per class"),
        ({"samples_per_class": {"train": "all", "validation": 50, "test": "all"}}, "too few samples per class"),
        ({"samples_per_class": {"train": "all", "validation": 0, "test": 500}}, "too few samples per class"),
        ({"dataset": "mnist5"}, "no data source named 'mnist5'"),
    ],
)
def test_a_benchmark_that_cannot_be_built_is_refused(changes, what):
    """More classes or samples than there are, and a data set that does not exist, are refused at locking."""
    with pytest.raises(StudyError, match=what):
        BENCHMARKS.load("split", "").describe(options("split", **changes), 0, "study.yaml:1")


def test_shared_outputs_are_those_of_every_task():
    """With `outputs: shared` the tasks of Split MNIST have the same two outputs: even and odd digits."""
    chosen = options("split", outputs="shared")
    module = BENCHMARKS.load("split", "")
    told, samples = module.describe(chosen, 0, ""), module.build(chosen, 0, load_source)
    assert [facts["classes"] for facts in told["tasks"].values()] == [[0, 1]] * 5
    assert (told["inputs"]["n_outputs"], told["inputs"]["label_tells_task"]) == (2, False)
    classes = load_source("mnist5k")[1][samples.sample]
    assert (samples.label == classes % 2).all()


def test_an_option_with_its_default_value_keeps_the_hash_of_older_plans():
    """`outputs: own` is left out of what a lock records, so that plans from before it are the same plans."""
    assert "outputs" not in options("split").model_dump(mode="json")
    assert options("split", outputs="shared").model_dump(mode="json")["outputs"] == "shared"


def test_unequal_classes_are_counted_as_they_are_dealt(monkeypatch, tmp_path):
    """With `all` samples and shuffled classes, the sizes of the tasks that a plan tells are those that are built."""
    write_raw_files(monkeypatch, tmp_path, "mnist")
    inputs, labels = load_source("mnist", tmp_path)
    kept = np.flatnonzero((labels != 3) | (np.arange(len(labels)) >= 10 * N_TRAIN) | (np.cumsum(labels == 3) < 3))
    per_class = tuple(N_TRAIN - (c == 3) for c in range(10))
    monkeypatch.setattr(SOURCES.load("mnist", ""), "N_PER_CLASS", {"train": per_class, "test": (N_TEST,) * 10})
    chosen = options(
        "split",
        dataset="mnist",
        class_order="shuffled",
        samples_per_class={"train": "all", "validation": 1, "test": "all"},
    )
    module = BENCHMARKS.load("split", "")
    for seed in (0, 1):
        told, samples = (
            module.describe(chosen, seed, ""),
            module.build(chosen, seed, lambda _: (inputs[kept], labels[kept])),
        )
        counts = Counter(zip(samples.task, samples.split, strict=True))
        assert counts == {(task, s): facts[f"n_{s}"] for task, facts in told["tasks"].items() for s in SPLITS}
    assert len({facts["n_train"] for facts in told["tasks"].values()}) == 2


def seen(samples, task):
    """Inputs of a task as a model gets them, by the row of the data set."""
    moves = np.array(list(samples.moves.values()))
    task_of = np.array([list(samples.moves).index(t) for t in samples.task])
    (rows,) = np.nonzero(np.array(samples.task) == task)
    return dict(
        zip(
            (samples.sample[rows] % 5000).tolist(),
            Inputs(samples.inputs, samples.input, moves, task_of)[rows],
            strict=True,
        )
    )


def test_a_permuted_task_has_the_pixels_of_the_data_set_at_other_places():
    """Each input of a task is that of the data set under one permutation of its pixels; tasks differ in it."""
    samples = BENCHMARKS.load("permuted", "").build(options("permuted", n_tasks=3), 0, load_source)
    digits, classes = load_source("mnist5k")
    assert len({tuple(moves) for moves in samples.moves.values()}) == 3
    for task, moves in samples.moves.items():
        assert sorted(moves.tolist()) == list(range(784))
        assert all(
            np.array_equal(input.ravel(), digits[row].ravel()[moves]) for row, input in seen(samples, task).items()
        )
    assert (samples.label == classes[samples.sample % 5000]).all()


def test_the_same_samples_are_in_every_task_under_ids_of_their_own():
    """A digit of the training set is for training in every task; inputs are stored once."""
    samples = BENCHMARKS.load("permuted", "").build(options("permuted", n_tasks=3), 0, load_source)
    assert len(samples.inputs) * 3 == len(samples.sample) == len(set(samples.sample.tolist()))
    split_of = {}
    for sample, split in zip((samples.sample % 5000).tolist(), samples.split, strict=True):
        assert split_of.setdefault(sample, split) == split


def test_tasks_of_a_longer_sequence_begin_with_those_of_a_shorter_one():
    """The permutation of a task depends on its name and the seed alone."""
    module = BENCHMARKS.load("permuted", "")
    long, short = (module.build(options("permuted", n_tasks=n), 0, load_source).moves for n in (4, 2))
    other = module.build(options("permuted", n_tasks=2), 1, load_source).moves
    assert all(np.array_equal(long[task], short[task]) for task in short)
    assert not any(np.array_equal(other[task], short[task]) for task in short)


@pytest.mark.parametrize("name", ["permuted", "rotated"])
def test_the_first_task_may_be_the_data_set_as_it_is(name):
    """With `identity_first` the inputs of the first task are the stored ones, and the other tasks are as without it."""
    module = BENCHMARKS.load(name, "")
    first, without = (module.build(options(name, n_tasks=2, identity_first=x), 0, load_source) for x in (True, False))
    digits, _ = load_source("mnist5k")
    assert all(np.array_equal(input, digits[row]) for row, input in seen(first, "t1").items())
    assert np.array_equal(first.moves["t2"], without.moves["t2"])


def test_outputs_of_their_own_make_domains_class_incremental():
    """With `outputs: own` the second task has the outputs after those of the first."""
    module, chosen = BENCHMARKS.load("permuted", ""), options("permuted", n_tasks=2, outputs="own")
    told, samples = module.describe(chosen, 0, ""), module.build(chosen, 0, load_source)
    assert told["tasks"]["t2"]["classes"] == list(range(10, 20))
    assert told["inputs"]["label_tells_task"]
    assert (samples.label == load_source("mnist5k")[1][samples.sample % 5000] + 10 * (samples.sample // 5000)).all()


@pytest.mark.parametrize("degrees", [0.0, 7.3, 45.0, 90.0, 133.7, 180.0, 359.0])
@pytest.mark.parametrize("size", [(28, 28), (5, 8)])
def test_a_rotation_is_that_of_pillow(degrees, size):
    """The same pixels come to lie at the same places as with another program's nearest-pixel rotation."""
    if size[0] != size[1] and degrees % 90 == 0:
        size = (8, 8)  # Pillow turns these by another method, which an oblong picture does not fit
    digit = (
        load_source("mnist5k")[0][1234][: size[0], : size[1]]
        if size == (28, 28)
        else np.arange(1, 1 + size[0] * size[1], dtype=np.uint8).reshape(size)
    )
    moves = rotation(degrees, *size)
    turned = np.where(moves < 0, 0, digit.ravel()[moves]).reshape(size)
    assert np.array_equal(turned, np.asarray(Image.fromarray(digit).rotate(degrees, Image.Resampling.NEAREST)))


def test_angles_stay_below_their_bound():
    """With `max_degrees: 1` no pixel near the centre moves; each task has an angle of its own."""
    module = BENCHMARKS.load("rotated", "")
    moves = module.build(options("rotated", n_tasks=5, max_degrees=1.0), 0, load_source).moves
    centre = np.arange(784).reshape(28, 28)[10:18, 10:18].ravel()
    assert all(np.array_equal(of_task[centre], centre) for of_task in moves.values())
    wide = module.build(options("rotated", n_tasks=5), 0, load_source).moves
    assert len({tuple(of_task) for of_task in wide.values()}) == 5


def test_colours_are_split_too(monkeypatch, tmp_path):
    """A benchmark of colour photographs: shape, and inputs that belong to their classes."""
    inputs, labels = write_raw_files(monkeypatch, tmp_path, "cifar100")
    chosen = options(
        "split",
        dataset="cifar100",
        n_tasks=10,
        classes_per_task=10,
        samples_per_class={"train": "all", "validation": 1, "test": "all"},
    )
    module = BENCHMARKS.load("split", "")
    told, samples = module.describe(chosen, 0, ""), module.build(chosen, 0, lambda name: load_source(name, tmp_path))
    assert told["inputs"]["shape"] == [32, 32, 3]
    assert told["inputs"]["sample_bytes"] == 3072
    assert np.array_equal(samples.inputs[samples.input], inputs[samples.sample])
    assert (samples.label == labels[samples.sample]).all()


def test_scrambled_outputs_tell_nothing_of_the_task():
    """The same samples are in the same tasks; their outputs are another numbering of the classes, one for each seed."""
    module = BENCHMARKS.load("split", "")
    plain, scrambled = (
        module.build(options("split", output_order=order), 3, load_source) for order in ("by_task", "scrambled")
    )
    assert plain.task == scrambled.task
    assert plain.sample.tolist() == scrambled.sample.tolist()
    renumbered = set(zip(plain.label.tolist(), scrambled.label.tolist(), strict=True))
    assert len(renumbered) == len({old for old, _ in renumbered}) == len({new for _, new in renumbered})
    told = module.describe(options("split", output_order="scrambled"), 3, "study.yaml:1")["tasks"]
    assert any(max(facts["classes"]) - min(facts["classes"]) > 1 for facts in told.values())
    for task, facts in told.items():
        of_task = {label for label, t in zip(scrambled.label.tolist(), scrambled.task, strict=True) if t == task}
        assert of_task == set(facts["classes"])
