"""The binary version of CIFAR: records of labels and 3 × 1024 values, red before green before blue, row by row.

The Python version of the same data is pickled, and reading it would execute what it says.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence

import numpy as np

from palimpsest.core.errors import DataError

SHAPE = (32, 32, 3)
N_VALUES = 32 * 32 * 3


def load_records(archive: bytes, members: Sequence[str], n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Images as uint8 `[sample, 32, 32, 3]` and labels as int64 `[sample]`, of the members one after the other.

    Args:
        archive: content of the `.tar.gz`; nothing of it is written to disk.
        members: names of files in it.
        n_labels: labels at the head of a record, of which the last one counts.

    Raises:
        DataError: a member is missing, or is not a number of whole records.
    """
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as file:
        records = np.concatenate([_records(file, name, n_labels + N_VALUES) for name in members])
    images = records[:, n_labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), records[:, n_labels - 1].astype(np.int64)


def _records(archive: tarfile.TarFile, name: str, size: int) -> np.ndarray:
    file = archive.extractfile(name) if name in archive.getnames() else None
    content = b"" if file is None else file.read()
    if not content or len(content) % size:
        raise DataError(
            "an archive does not hold what its name promises",
            where=name,
            expected=f"records of {size} bytes",
            got=f"{len(content)} bytes",
            next="get the archive anew",
        )
    return np.frombuffer(content, np.uint8).reshape(-1, size)
