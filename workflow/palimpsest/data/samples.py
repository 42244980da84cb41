"""The samples of a study: their table, their arrays, and what is recorded of them."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from palimpsest.core.artifact import Job
from palimpsest.core.errors import DataError
from palimpsest.core.hashing import hash_bytes, hash_file, hash_json
from palimpsest.data.sources import SOURCES

TABLE, INPUTS = "data/samples.parquet", "data/inputs.npy"


@dataclass(frozen=True)
class Samples:
    """All samples of a benchmark, over its splits and tasks.

    `inputs[i]` belongs to row i of every other field; `sample` identifies a sample within the study and ascends.
    """

    inputs: np.ndarray  # [n, ...] uint8
    dataset: list[str]
    split: list[str]
    sample: np.ndarray  # [n] int64
    label: np.ndarray  # [n] int64
    task: list[str]
    sources: tuple[str, ...]


def load_source(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a data set, after its raw files were found to be those that the source declares.

    Raises:
        DataError: a raw file is missing or has another hash.
    """
    source = SOURCES.load(name, "benchmark.options")
    paths = source.find()
    for file, expected in source.RAW_FILES.items():
        found = hash_file(paths[file]) if paths[file].is_file() else "no such file"
        if found != expected:
            raise DataError(
                f"a raw file of the data set {name} is not the one that was declared",
                where=str(paths[file]),
                expected=f"sha256 {expected}",
                got=found,
                next="install the pinned package again (remove envs/.venv-requirements and use envs/run)",
            )
    return source.load(paths)


def write_samples(job: Job, samples: Samples) -> dict[str, int]:
    """Write `data/samples.parquet` and `data/inputs.npy`; returns the counts of exact duplicates.

    The SHA-256 of a sample is taken over the bytes of its input as stored, without the label. `duplicate_of` is the
    first sample with the same input. The split hash covers data set, split, task, label and input of every sample.
    """
    hashes = [hash_bytes(row.tobytes()) for row in samples.inputs]
    first: dict[str, int] = {}
    for digest, sample in zip(hashes, samples.sample.tolist(), strict=True):
        first.setdefault(digest, sample)
    duplicate_of = [
        None if first[digest] == sample else first[digest]
        for digest, sample in zip(hashes, samples.sample.tolist(), strict=True)
    ]
    rows = list(zip(samples.dataset, samples.split, samples.task, samples.label.tolist(), hashes, strict=True))
    duplicates = _count_duplicates(hashes, samples.split)
    buffer = io.BytesIO()
    np.save(buffer, samples.inputs, allow_pickle=False)
    job.write_bytes(INPUTS, buffer.getvalue(), kind="inputs")
    job.write_table(
        TABLE,
        "samples",
        {
            "dataset": samples.dataset,
            "split": samples.split,
            "sample": samples.sample,
            "label": samples.label,
            "task": samples.task,
            "sha256": hashes,
            "duplicate_of": duplicate_of,
        },
        sources={name: _describe_source(name) for name in samples.sources},
        duplicates=duplicates,
        split_sha256=hash_json([list(row) for row in rows]),
    )
    return duplicates


def read_samples(job: Job) -> tuple[pa.Table, np.ndarray]:
    """The table of samples, and their inputs mapped into memory: row i of one belongs to row i of the other."""
    table = job.read_table(TABLE, "samples")
    inputs = np.load(job.locate(INPUTS), mmap_mode="r", allow_pickle=False)
    assert len(inputs) == len(table), "each sample has one input"
    return table, inputs


def _describe_source(name: str) -> dict[str, object]:
    source = SOURCES.load(name, "benchmark.options")
    return {
        "source": source.SOURCE,
        "licence": source.LICENCE,
        "reference": source.REFERENCE,
        "raw_files": source.RAW_FILES,
    }


def _count_duplicates(hashes: Iterable[str], splits: Iterable[str]) -> dict[str, int]:
    """Samples whose input stands elsewhere too: `within_splits` (only in their own split) and `across_splits`."""
    where: dict[str, list[str]] = {}
    for digest, split in zip(hashes, splits, strict=True):
        where.setdefault(digest, []).append(split)
    repeated = [found for found in where.values() if len(found) > 1]
    across = [found for found in repeated if len(set(found)) > 1]
    return {
        "within_splits": sum(len(found) for found in repeated) - sum(len(found) for found in across),
        "across_splits": sum(len(found) for found in across),
    }
