"""Fashion-MNIST: 70,000 pictures of clothes in the format of MNIST, 10,000 of them for test."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from palimpsest.data.sources._idx import load_pairs

SOURCE = "https://github.com/zalandoresearch/fashion-mnist, as in the Debian package dataset-fashion-mnist"
GET = (
    "apt-get install dataset-fashion-mnist; or put the four files of https://github.com/zalandoresearch/fashion-mnist "
    "there, compressed or not"
)
LICENCE = "MIT (Zalando SE)"
REFERENCE = (
    "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning "
    "algorithms, arXiv:1708.07747 (2017)"
)
INPUT_SHAPE = (28, 28)
N_CLASSES = 10
N_PER_CLASS = {"train": (6000,) * 10, "test": (1000,) * 10}
RAW_FILES = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


def places() -> list[Path]:
    """Where the Debian package puts the files."""
    return [Path("/usr/share/datasets/fashion-mnist")]


def load(raw: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Pictures as uint8 `[sample, 28, 28]`, grey values 0 to 255, and their classes as int64 `[sample]`."""
    return load_pairs(raw)
