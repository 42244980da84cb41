"""CIFAR-10: 60,000 colour photographs of ten classes, 10,000 of them for test. Its archive has to be downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from palimpsest.data.sources._cifar import SHAPE, load_records

SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html, binary version"
GET = (
    "download https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz (MD5 c32a1d4ab5d03f1284b67883e8d87530) and put "
    "it there"
)
LICENCE = "none is stated; the authors ask to cite the report"
REFERENCE = "A. Krizhevsky, Learning multiple layers of features from tiny images, report, University of Toronto (2009)"
INPUT_SHAPE = SHAPE
N_CLASSES = 10
N_PER_CLASS = {"train": (5000,) * 10, "test": (1000,) * 10}
RAW_FILES = {"cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}


def places() -> list[Path]:
    """No package brings the archive."""
    return []


def load(raw: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Photographs as uint8 `[sample, 32, 32, 3]`, and their classes as int64 `[sample]`."""
    (archive,) = raw.values()
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    return load_records(archive, [f"cifar-10-batches-bin/{name}.bin" for name in names], n_labels=1)
