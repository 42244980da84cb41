"""MNIST: 70,000 handwritten digits, 10,000 of them for test. Its four files have to be downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from palimpsest.data.sources._idx import load_pairs

SOURCE = "the four IDX files of http://yann.lecun.com/exdb/mnist/"
GET = (
    "download train-images-idx3-ubyte.gz (MD5 f68b3c2dcbeaaa9fbdd348bbdeb94873), train-labels-idx1-ubyte.gz "
    "(d53e105ee54ea40749a09fcbcd1e9432), t10k-images-idx3-ubyte.gz (9fb629c4189551a2d022fa330f9573f3) and "
    "t10k-labels-idx1-ubyte.gz (ec29112dd5afa0611ce80d1b7f02629c), and put them there, compressed or not; torchvision "
    "names mirrors"
)
LICENCE = "CC BY-SA 3.0 (Y. LeCun, C. Cortes)"
REFERENCE = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, "
    "Proceedings of the IEEE 86 (1998) 2278-2324, doi:10.1109/5.726791"
)
INPUT_SHAPE = (28, 28)
N_CLASSES = 10
N_PER_CLASS = {
    "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
}
RAW_FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def places() -> list[Path]:
    """No package brings the files."""
    return []


def load(raw: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Digits as uint8 `[sample, 28, 28]`, grey values 0 to 255, and their classes as int64 `[sample]`."""
    return load_pairs(raw)
