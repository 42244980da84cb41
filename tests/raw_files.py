"""Small raw files in the formats in which data sets are published, for sources whose real ones need a download."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from palimpsest.core.streams import generator
from palimpsest.data.sources import SOURCES

N_TRAIN, N_TEST = 3, 2


def write_raw_files(monkeypatch: Any, folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Write a data set of 3 training and 2 test samples of each class, and let its source declare it.

    Returns:
        Its inputs and labels, as the source should give them.
    """
    source = SOURCES.load(name, "")
    draws = generator("tests", "raw", name)
    labels = np.concatenate([draws.permutation(np.repeat(range(source.N_CLASSES), n)) for n in (N_TRAIN, N_TEST)])
    inputs = draws.integers(0, 256, (len(labels), *source.INPUT_SHAPE)).astype(np.uint8)
    n_train = N_TRAIN * source.N_CLASSES
    parts = [(inputs[:n_train], labels[:n_train]), (inputs[n_train:], labels[n_train:])]
    raw = _cifar(source, parts) if "tar.gz" in str(source.RAW_FILES) else _idx(parts)
    (folder / name).mkdir(parents=True)
    for file, content in raw.items():
        (folder / name / file).write_bytes(content)
    monkeypatch.setattr(
        source, "RAW_FILES", {file: hashlib.sha256(content).hexdigest() for file, content in raw.items()}
    )
    monkeypatch.setattr(
        source, "N_PER_CLASS", {"train": (N_TRAIN,) * source.N_CLASSES, "test": (N_TEST,) * source.N_CLASSES}
    )
    return inputs, labels


def compress(path: Path) -> None:
    """Put a file in its place that holds it compressed."""
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
    path.unlink()


def _idx(parts: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, bytes]:
    raw = {}
    for name, (images, labels) in zip(("train", "t10k"), parts, strict=True):
        raw[f"{name}-images-idx3-ubyte"] = b"\0\0\x08\x03" + _sizes(images.shape) + images.tobytes()
        raw[f"{name}-labels-idx1-ubyte"] = b"\0\0\x08\x01" + _sizes(labels.shape) + bytes(labels.tolist())
    return raw


def _sizes(shape: tuple[int, ...]) -> bytes:
    return b"".join(size.to_bytes(4, "big") for size in shape)


def _cifar(source: ModuleType, parts: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, bytes]:
    """Red, green and blue plane of each image after its label; CIFAR-100 has a coarse label before the fine one."""
    (name,) = source.RAW_FILES
    coarse = b"\x07" if "100" in name else b""
    records = [
        [coarse + bytes([label]) + image.transpose(2, 0, 1).tobytes() for image, label in zip(*part, strict=True)]
        for part in parts
    ]
    if coarse:
        members = {
            f"cifar-100-binary/{part}.bin": of_part for part, of_part in zip(("train", "test"), records, strict=True)
        }
    else:
        cut = [records[0][n * 6 : (n + 1) * 6] for n in range(5)]
        members = {f"cifar-10-batches-bin/data_batch_{n + 1}.bin": of_batch for n, of_batch in enumerate(cut)}
        members["cifar-10-batches-bin/test_batch.bin"] = records[1]
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for member, of_member in members.items():
            info = tarfile.TarInfo(member)
            info.size = sum(map(len, of_member))
            archive.addfile(info, io.BytesIO(b"".join(of_member)))
    return {name: file.getvalue()}
