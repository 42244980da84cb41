"""The samples of a study: their table and their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from palimpsest.core.artifact import Job
from palimpsest.core.inputs import Inputs

TABLE, INPUTS, MOVES = FILES = ("data/samples.parquet", "data/inputs.npy", "data/moves.parquet")
"""What training and evaluation read of the data."""


@dataclass(frozen=True)
class Samples:
    """All samples of a benchmark, over its splits and tasks; row i of each field belongs to sample i.

    Args:
        inputs: what is stored, `[stored, *shape]` uint8; several samples may share one.
        input: which stored input a sample has, `[n]` int64.
        dataset, split, task: by name.
        sample: identifies a sample within the study, `[n]` int64, ascending.
        label: its output, `[n]` int64.
        sources: data sets from which they come.
        moves: by task, where its inputs are not the stored ones: for each pixel, row by row, the stored pixel that
            stands there, `[height · width]` int64; −1 for none (black). All tasks, or none.
    """

    inputs: np.ndarray
    input: np.ndarray
    dataset: list[str]
    split: list[str]
    sample: np.ndarray
    label: np.ndarray
    task: list[str]
    sources: tuple[str, ...]
    moves: Mapping[str, np.ndarray] = field(default_factory=dict)


Data = tuple[pa.Table, Inputs]
"""The table of samples, and their inputs by row of the table."""


def read_samples(job: Job) -> Data:
    """The samples of a study; inputs are mapped into memory."""
    table, moves = job.read_table(TABLE, "samples"), job.read_table(MOVES, "moves")
    return table, Inputs.of_tables(np.load(job.locate(INPUTS), mmap_mode="r", allow_pickle=False), table, moves)
