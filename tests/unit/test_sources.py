"""Data sets: raw files in their published formats, files that are missing or changed, what a source declares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from palimpsest.core.errors import DataError
from palimpsest.data.raw import load_source, path_of
from palimpsest.data.sources import SOURCES
from palimpsest.data.sources._idx import read_idx
from raw_files import compress, write_raw_files

NOWHERE = Path("no folder of raw files")
TO_DOWNLOAD = [name for name in SOURCES.names() if name != "mnist5k"]


@pytest.mark.parametrize("name", SOURCES.names())
def test_a_source_declares_itself(name):
    """Whence it is, how it is had, licence, reference, and a number of samples for each class."""
    source = SOURCES.load(name, "")
    assert all((source.__doc__, source.SOURCE, source.GET, source.LICENCE, source.REFERENCE))
    assert all(len(counts) == source.N_CLASSES for counts in source.N_PER_CLASS.values())


@pytest.mark.parametrize("name", [name for name in SOURCES.names() if SOURCES.load(name, "").places()])
def test_a_source_that_a_package_brings_is_what_it_declares(name):
    """Hashes, samples of each class and shape of the real data are those that the source declares of itself."""
    source = SOURCES.load(name, "")
    if not all(path_of(name, file, NOWHERE) for file in source.RAW_FILES):
        pytest.skip(f"the raw files of {name} are not on this machine: {source.GET}")
    inputs, labels = load_source(name, NOWHERE)
    assert (inputs.dtype, labels.dtype) == (np.uint8, np.int64)
    assert inputs.shape == (len(labels), *source.INPUT_SHAPE)


@pytest.mark.parametrize("name", TO_DOWNLOAD)
def test_the_published_format_is_read(monkeypatch, tmp_path, name):
    """Files of the published format give the images and labels that were written, training before test samples."""
    inputs, labels = write_raw_files(monkeypatch, tmp_path, name)
    found_inputs, found_labels = load_source(name, tmp_path)
    assert (found_inputs.dtype, found_labels.dtype) == (np.uint8, np.int64)
    assert np.array_equal(found_inputs, inputs)
    assert found_labels.tolist() == labels.tolist()


def test_a_file_may_lie_compressed(monkeypatch, tmp_path):
    """Whoever compressed a file, its content is the same."""
    inputs, _ = write_raw_files(monkeypatch, tmp_path, "mnist")
    for path in list((tmp_path / "mnist").iterdir()):
        compress(path)
    assert np.array_equal(load_source("mnist", tmp_path)[0], inputs)


def test_a_damaged_compressed_file_is_refused(monkeypatch, tmp_path):
    """A file that was cut off is named."""
    write_raw_files(monkeypatch, tmp_path, "mnist")
    path = tmp_path / "mnist" / "train-images-idx3-ubyte"
    compress(path)
    short = path.with_name(path.name + ".gz")
    short.write_bytes(short.read_bytes()[:-50])
    with pytest.raises(DataError, match="not the one that was declared") as error:
        load_source("mnist", tmp_path)
    assert error.value.where == str(short)


@pytest.mark.parametrize("name", TO_DOWNLOAD)
def test_a_changed_raw_file_is_refused(monkeypatch, tmp_path, name):
    """One byte more stops the study: the file and both hashes are named."""
    write_raw_files(monkeypatch, tmp_path, name)
    source = SOURCES.load(name, "")
    file = next(iter(source.RAW_FILES))
    path = tmp_path / name / file
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataError, match=f"a raw file of the data set {name} is not the one") as error:
        load_source(name, tmp_path)
    assert error.value.where == str(path)
    assert error.value.expected == f"sha256 {source.RAW_FILES[file]}"
    assert error.value.got != error.value.expected


@pytest.mark.parametrize("name", SOURCES.names())
def test_a_missing_raw_file_is_named_with_where_and_how(monkeypatch, tmp_path, name):
    """The error says in which folder which file is looked for, its hash, and how it is had."""
    source = SOURCES.load(name, "")
    monkeypatch.setattr(source, "places", lambda: [])
    with pytest.raises(DataError, match="is missing") as error:
        load_source(name, tmp_path)
    file, sha256 = next(iter(source.RAW_FILES.items()))
    assert str(tmp_path / name / file) in error.value.where
    assert sha256 in error.value.expected
    assert error.value.next == source.GET


def test_the_folder_of_raw_files_goes_before_a_package(monkeypatch, tmp_path):
    """What the user put there is taken, and not what a package brought."""
    write_raw_files(monkeypatch, tmp_path / "package", "fashion_mnist")
    source = SOURCES.load("fashion_mnist", "")
    monkeypatch.setattr(source, "places", lambda: [tmp_path / "package" / "fashion_mnist"])
    file = "t10k-labels-idx1-ubyte"
    assert path_of("fashion_mnist", file, tmp_path) == tmp_path / "package" / "fashion_mnist" / file
    (tmp_path / "fashion_mnist").mkdir()
    (tmp_path / "fashion_mnist" / file).write_bytes(b"")
    assert path_of("fashion_mnist", file, tmp_path) == tmp_path / "fashion_mnist" / file


def test_data_that_are_not_as_declared_are_refused(monkeypatch, tmp_path):
    """Another number of samples of a class than the source declares, on which the plan was made, is an error."""
    write_raw_files(monkeypatch, tmp_path, "mnist")
    monkeypatch.setattr(SOURCES.load("mnist", ""), "N_PER_CLASS", {"train": (3,) * 9 + (4,), "test": (2,) * 9 + (1,)})
    with pytest.raises(DataError, match="not what its source declares"):
        load_source("mnist", tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\x08\x01\0\0\0\x02\x07", b"\0\0\x0d\x01\0\0\0\x01\x07", b"\x01\0\x08\x01\0\0\0\x01\x07"]
)
def test_what_is_no_idx_file_is_refused(content):
    """Nothing, a value too few, floating-point numbers, another beginning."""
    with pytest.raises(DataError, match="no IDX file"):
        read_idx(content, "file")


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_an_archive_without_a_member_is_refused(monkeypatch, tmp_path, name):
    """The member that is missing is named."""
    write_raw_files(monkeypatch, tmp_path, name)
    (archive,) = (tmp_path / name).iterdir()
    from palimpsest.data.sources._cifar import load_records

    with pytest.raises(DataError) as error:
        load_records(archive.read_bytes(), ["cifar/absent.bin"], 1)
    assert error.value.where == "cifar/absent.bin"
