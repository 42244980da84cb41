"""What is recorded of the samples, and how their inputs are read."""

from __future__ import annotations

import hashlib

import numpy as np

from palimpsest.core.artifact import Job
from palimpsest.core.inputs import Inputs
from palimpsest.data.samples import INPUTS, MOVES, TABLE, Samples, read_samples
from palimpsest.data.write import write_samples


def job(folder) -> Job:
    return Job(folder, "data", code="c" * 64, environment="e" * 64)


def samples(values, splits, labels=None) -> Samples:
    n = len(values)
    return Samples(
        inputs=np.array(values, dtype=np.uint8).reshape(n, 1, 1),
        input=np.arange(n),
        dataset=["d"] * n,
        split=splits,
        sample=np.arange(n, dtype=np.int64) * 10,
        label=np.array(labels or [0] * n, dtype=np.int64),
        task=["t1"] * n,
        sources=(),
    )


def test_duplicates_are_counted_within_and_across_splits(tmp_path):
    """Three 1s over train and test count across; two 2s in train within; the single 3 not at all."""
    made = samples([1, 1, 2, 2, 1, 3], ["train", "train", "train", "train", "test", "test"])
    assert write_samples(job(tmp_path), made) == {"within_splits": 2, "across_splits": 3}
    assert job(tmp_path).read_footer(TABLE)["duplicates"] == {"within_splits": 2, "across_splits": 3}


def test_a_duplicate_names_the_first(tmp_path):
    """`duplicate_of` is the first sample with the same input, null for that one itself, whatever the labels."""
    write_samples(job(tmp_path), samples([7, 8, 7, 7], ["train"] * 4, labels=[0, 0, 1, 0]))
    assert read_samples(job(tmp_path))[0]["duplicate_of"].to_pylist() == [None, None, 0, 0]


def test_the_hash_of_a_sample_is_that_of_its_stored_bytes(tmp_path):
    """SHA-256 over the bytes of the input, without the label."""
    write_samples(job(tmp_path), samples([7, 8], ["train"] * 2))
    hashes = read_samples(job(tmp_path))[0]["sha256"].to_pylist()
    assert hashes == [hashlib.sha256(bytes([value])).hexdigest() for value in (7, 8)]


def test_the_split_hash_covers_split_label_and_input(tmp_path):
    """Another split, label or input of one sample gives another hash of the split."""
    forms = [
        samples([1, 2], ["train", "test"]),
        samples([1, 3], ["train", "test"]),
        samples([1, 2], ["train", "train"]),
        samples([1, 2], ["train", "test"], labels=[0, 1]),
    ]
    hashes = set()
    for number, form in enumerate(forms):
        write_samples(job(tmp_path / str(number)), form)
        hashes.add(job(tmp_path / str(number)).read_footer(TABLE)["split_sha256"])
    assert len(hashes) == len(forms)


def test_rows_and_inputs_belong_together(tmp_path):
    """Row i of the table describes input i of the array, which is mapped and not loaded."""
    write_samples(job(tmp_path), samples([5, 6, 4], ["train"] * 3, labels=[1, 2, 0]))
    table, inputs = read_samples(job(tmp_path))
    assert list(zip(table["label"].to_pylist(), inputs[np.arange(3)][:, 0, 0].tolist(), strict=True)) == [
        (1, 5),
        (2, 6),
        (0, 4),
    ]
    assert isinstance(inputs.stored, np.memmap)


def test_all_files_become_parents(tmp_path):
    """A job that reads the samples has the table, the inputs and how tasks move their pixels as parents."""
    write_samples(job(tmp_path), samples([1], ["train"]))
    reader = job(tmp_path)
    read_samples(reader)
    assert reader.parents.keys() == {TABLE, INPUTS, MOVES}


def test_samples_of_several_tasks_share_a_stored_input(tmp_path):
    """Two stored inputs, three tasks that move their pixels: six samples, each as its task shows it, −1 is black."""
    stored = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], dtype=np.uint8)
    moves = {"t1": [0, 1, 2, 3], "t2": [3, 2, 1, 0], "t3": [1, -1, -1, 2]}
    made = Samples(
        inputs=stored,
        input=np.array([0, 1] * 3),
        dataset=["d"] * 6,
        split=["train", "test"] * 3,
        sample=np.arange(6),
        label=np.zeros(6, dtype=np.int64),
        task=["t1", "t1", "t2", "t2", "t3", "t3"],
        sources=(),
        moves={task: np.array(sources) for task, sources in moves.items()},
    )
    write_samples(job(tmp_path), made)
    table, inputs = read_samples(job(tmp_path))
    assert np.load(tmp_path / INPUTS).shape == (2, 2, 2)
    seen = inputs[np.arange(6)]
    assert seen.reshape(6, 4).tolist() == [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
        [4, 3, 2, 1],
        [8, 7, 6, 5],
        [2, 0, 0, 3],
        [6, 0, 0, 7],
    ]
    assert inputs[np.array([4, 1, 2])].tolist() == [seen[4].tolist(), seen[1].tolist(), seen[2].tolist()]
    assert table["sha256"].to_pylist() == [hashlib.sha256(row.tobytes()).hexdigest() for row in seen]


def test_the_pixels_of_a_colour_move_together(tmp_path):
    """A pixel of three values moves as one."""
    stored = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
    inputs = Inputs(stored, np.array([0]), np.array([[3, 2, 1, 0]]), np.array([0]))
    assert inputs[np.array([0])].tolist() == [[[[9, 10, 11], [6, 7, 8]], [[3, 4, 5], [0, 1, 2]]]]


def test_reading_moved_inputs_does_not_change_the_stored_ones():
    """What a batch gets is memory of its own."""
    stored = np.array([[[1, 2]]], dtype=np.uint8)
    Inputs(stored, np.array([0, 0]), np.array([[1, 0]]), np.array([0, 0]))[np.array([0, 1])][:] = 9
    assert stored.tolist() == [[[1, 2]]]
