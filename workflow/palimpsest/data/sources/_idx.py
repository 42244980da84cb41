"""Files of the IDX format, in which MNIST and what followed it are published."""

from __future__ import annotations

import math

import numpy as np

from palimpsest.core.errors import DataError

UNSIGNED_BYTE = 8
NAMES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def load_pairs(raw: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Images as uint8 `[sample, height, width]` and labels as int64 `[sample]`, training samples before test samples.

    Args:
        raw: content of the four files `NAMES`.
    """
    arrays = [read_idx(raw[name], name) for name in NAMES]
    return np.concatenate(arrays[0::2]), np.concatenate(arrays[1::2]).astype(np.int64)


def read_idx(content: bytes, name: str) -> np.ndarray:
    """An array of unsigned bytes: 00 00 08, the number of dimensions, each dimension as 32 bits, most significant byte
    first, then the values, the last dimension fastest (Y. LeCun, http://yann.lecun.com/exdb/mnist/).

    Raises:
        DataError: the content is of another format or length.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "two").tolist()
    [7, 9]
    """
    kind, n_dimensions = content[2:4] if len(content) >= 4 else (0, 0)
    start = 4 + 4 * n_dimensions
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if content[:2] != b"\0\0" or kind != UNSIGNED_BYTE or len(content) != start + math.prod(shape):
        raise DataError(
            "a raw file is no IDX file of unsigned bytes",
            where=name,
            expected="00 00 08, the number of dimensions, the dimensions, and as many values as they say",
            got=f"{content[:4].hex(' ')}, {shape}, {len(content)} bytes",
            next="get the file anew",
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
