"""What is recorded of the samples of a study when its benchmark is built."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from palimpsest.core.artifact import Job
from palimpsest.core.hashing import hash_bytes
from palimpsest.core.inputs import Inputs
from palimpsest.core.tables import TABLES
from palimpsest.data.samples import INPUTS, MOVES, TABLE, Samples
from palimpsest.data.sources import SOURCES

ROWS_AT_ONCE = 4096


def write_samples(job: Job, samples: Samples) -> dict[str, int]:
    """Write `data/samples.parquet`, `data/inputs.npy` and `data/moves.parquet`; returns the counts of exact duplicates.

    The SHA-256 of a sample is taken over the bytes of its input as a model gets it, without the label. `duplicate_of`
    is the first sample with the same input. The split hash covers data set, split, task, label and input of every
    sample: SHA-256 over a line `dataset,split,task,label,sha256` for each, in the order of the table.
    """
    hashes = list(_hashes(samples))
    first: dict[str, int] = {}
    for digest, sample in zip(hashes, samples.sample.tolist(), strict=True):
        first.setdefault(digest, sample)
    duplicate_of = [
        None if first[digest] == sample else first[digest]
        for digest, sample in zip(hashes, samples.sample.tolist(), strict=True)
    ]
    rows = zip(samples.dataset, samples.split, samples.task, samples.label.tolist(), hashes, strict=True)
    duplicates = _count_duplicates(hashes, samples.split)
    buffer = io.BytesIO()
    np.save(buffer, samples.inputs, allow_pickle=False)
    job.write_bytes(INPUTS, buffer.getvalue(), kind="inputs")
    job.write_table(MOVES, "moves", _moves_table(samples.moves))
    job.write_table(
        TABLE,
        "samples",
        {
            "dataset": samples.dataset,
            "split": samples.split,
            "sample": samples.sample,
            "label": samples.label,
            "task": samples.task,
            "input": samples.input,
            "sha256": hashes,
            "duplicate_of": duplicate_of,
        },
        sources={name: _describe_source(name) for name in samples.sources},
        duplicates=duplicates,
        split_sha256=hash_bytes("".join(f"{d},{s},{t},{n},{h}\n" for d, s, t, n, h in rows).encode()),
    )
    return duplicates


def _moves_table(moves: Mapping[str, np.ndarray]) -> pa.Table:
    schema = TABLES["moves"].schema
    parts = [
        pa.table(
            {
                "task": pa.repeat(task, len(sources)),
                "pixel": pa.array(np.arange(len(sources)), pa.int32()),
                "source": pa.array(sources, pa.int32(), mask=sources < 0),
            },
            schema,
        )
        for task, sources in moves.items()
    ]
    return pa.concat_tables([schema.empty_table(), *parts])


def _hashes(samples: Samples) -> Iterator[str]:
    rows = pa.table({"task": samples.task, "input": samples.input})
    inputs = Inputs.of_tables(samples.inputs, rows, _moves_table(samples.moves))
    for start in range(0, len(inputs), ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(inputs)))
        yield from (hash_bytes(row.tobytes()) for row in inputs[rows])


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
