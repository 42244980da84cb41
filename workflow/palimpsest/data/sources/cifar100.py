"""CIFAR-100: 60,000 colour photographs of a hundred classes, 10,000 of them for test. Its archive has to be downloaded.

The classes are the fine ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from palimpsest.data.sources._cifar import SHAPE, load_records

SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html, binary version"
GET = (
    "download https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz (MD5 03b5dce01913d631647c71ecec9e9cb8) and put "
    "it there"
)
LICENCE = "none is stated; the authors ask to cite the report"
REFERENCE = "A. Krizhevsky, Learning multiple layers of features from tiny images, report, University of Toronto (2009)"
INPUT_SHAPE = SHAPE
N_CLASSES = 100
N_PER_CLASS = {"train": (500,) * 100, "test": (100,) * 100}
RAW_FILES = {"cifar-100-binary.tar.gz": "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}


def places() -> list[Path]:
    """No package brings the archive."""
    return []


def load(raw: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Photographs as uint8 `[sample, 32, 32, 3]`, and their classes as int64 `[sample]`."""
    (archive,) = raw.values()
    return load_records(archive, [f"cifar-100-binary/{part}.bin" for part in ("train", "test")], n_labels=2)
