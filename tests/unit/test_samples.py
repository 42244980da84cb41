"""What is recorded of the samples, and raw files that changed."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from palimpsest.core.artifact import Job
from palimpsest.core.errors import DataError
from palimpsest.data.samples import INPUTS, TABLE, Samples, load_source, read_samples, write_samples
from palimpsest.data.sources import SOURCES, mnist5k


def job(folder) -> Job:
    return Job(folder, "data", code="c" * 64, environment="e" * 64)


def samples(values, splits, labels=None) -> Samples:
    n = len(values)
    return Samples(
        inputs=np.array(values, dtype=np.uint8).reshape(n, 1),
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
    assert list(zip(table["label"].to_pylist(), inputs[:, 0].tolist(), strict=True)) == [(1, 5), (2, 6), (0, 4)]
    assert isinstance(inputs, np.memmap)


def test_both_files_become_parents(tmp_path):
    """A job that reads the samples has the table and the inputs as parents."""
    write_samples(job(tmp_path), samples([1], ["train"]))
    reader = job(tmp_path)
    read_samples(reader)
    assert reader.parents.keys() == {TABLE, INPUTS}


@pytest.mark.parametrize("name", SOURCES.names())
def test_a_changed_raw_file_is_refused(monkeypatch, name):
    """A raw file whose hash is not the declared one stops the study, with both hashes."""
    source = SOURCES.load(name, "")
    declared = dict.fromkeys(source.RAW_FILES, "0" * 64)
    monkeypatch.setattr(source, "RAW_FILES", declared)
    with pytest.raises(DataError, match="not the one that was declared") as error:
        load_source(name)
    assert error.value.expected == "sha256 " + "0" * 64
    assert len(error.value.got) == 64


def test_a_missing_raw_file_is_refused(monkeypatch, tmp_path):
    """A raw file that is not there is named with its path."""
    monkeypatch.setattr(mnist5k, "find", lambda: {"mnist_5k.csv.gz": tmp_path / "absent"})
    with pytest.raises(DataError) as error:
        load_source("mnist5k")
    assert error.value.where == str(tmp_path / "absent")
    assert error.value.got == "no such file"


@pytest.mark.parametrize("name", SOURCES.names())
def test_a_source_is_what_it_declares(name):
    """Shape, number of classes and fewest samples of a class are those that the source declares of itself."""
    source = SOURCES.load(name, "")
    inputs, labels = load_source(name)
    assert inputs.dtype == np.uint8
    assert labels.dtype == np.int64
    assert inputs.shape == (len(labels), *source.INPUT_SHAPE)
    assert np.unique(labels).tolist() == list(range(source.N_CLASSES))
    assert np.bincount(labels).min() == source.N_PER_CLASS
    assert all((source.SOURCE, source.LICENCE, source.REFERENCE))
