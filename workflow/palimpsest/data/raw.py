"""Raw files of data sets: where they lie, and whether they are those that the source declares."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

from palimpsest.core.errors import DataError
from palimpsest.core.hashing import hash_bytes
from palimpsest.data.sources import SOURCES

FOLDER = Path("data/raw")
"""Where raw files are looked for first, below the folder of the project, each data set's in a folder of its own."""
COMPRESSED = ".gz"

Load = Callable[[str], tuple[np.ndarray, np.ndarray]]
"""Gives inputs and labels of a data set by its name."""


def load_source(name: str, folder: Path = FOLDER) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a data set, after its raw files were found to be those that the source declares.

    A file may lie compressed by gzip, with `.gz` after its name. The hash is of its content without that compression,
    since a mirror may have compressed it anew.

    Args:
        name: of the data set.
        folder: the folder of raw files; those in `folder/NAME` go before those of an installed package.

    Raises:
        DataError: a raw file is missing or has another hash, or the data are not as the source declares.
    """
    source = SOURCES.load(name, "benchmark.options")
    raw = {file: _content(source, name, folder, file) for file in source.RAW_FILES}
    inputs, labels = source.load(raw)
    counts = [np.bincount(part, minlength=source.N_CLASSES).tolist() for part in _own_parts(source, labels)]
    if counts != [list(expected) for expected in source.N_PER_CLASS.values()]:
        raise DataError(
            "a data set is not what its source declares",
            where=name,
            expected=f"samples of each class {source.N_PER_CLASS}",
            got=f"{counts}",
            next="correct the source's file",
        )
    return inputs, labels


def path_of(name: str, file: str, folder: Path) -> Path | None:
    """Where a raw file of a data set lies, compressed or not; none if it is missing."""
    places = [folder / name, *SOURCES.load(name, "benchmark.options").places()]
    candidates = [place / f"{file}{ending}" for place in places for ending in ("", COMPRESSED)]
    return next((path for path in candidates if path.is_file()), None)


def _content(source: ModuleType, name: str, folder: Path, file: str) -> bytes:
    path = path_of(name, file, folder)
    if path is None:
        raise DataError(
            f"a raw file of the data set {name} is missing",
            where=" or ".join(str(place / file) for place in [folder / name, *source.places()]),
            expected=f"the file {file}, sha256 {source.RAW_FILES[file]}",
            got="no such file",
            next=source.GET,
        )
    try:
        content = path.read_bytes() if path.name == file else gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _changed(source, name, path, file, f"{type(error).__name__}: {error}") from None
    if hash_bytes(content) != source.RAW_FILES[file]:
        raise _changed(source, name, path, file, f"sha256 {hash_bytes(content)}")
    return content


def _changed(source: ModuleType, name: str, path: Path, file: str, got: str) -> DataError:
    return DataError(
        f"a raw file of the data set {name} is not the one that was declared",
        where=str(path),
        expected=f"sha256 {source.RAW_FILES[file]}",
        got=got,
        next=f"remove it; {source.GET}",
    )


def _own_parts(source: ModuleType, labels: np.ndarray) -> list[np.ndarray]:
    """Labels of the training samples and, where the data set has its own, of the test samples."""
    sizes = [sum(counts) for counts in source.N_PER_CLASS.values()]
    return np.split(labels, np.cumsum(sizes)[:-1])
