"""Time and peak memory of counting the accuracy matrix of one predictions file.

    python tests/benchmarks/predictions.py FOLDER --rows 100000000

makes 20 stages × 20 tasks × rows / 400 samples below FOLDER in row groups as `core.artifact` writes them, has
`core.matrix` count them from the file, and removes the file.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from palimpsest.core.artifact import ROW_GROUP, ROWS_AT_ONCE, Job, open_writer, record_path, write_atomically
from palimpsest.core.hashing import canonical_json, hash_file
from palimpsest.core.matrix import COLUMNS, matrix
from palimpsest.core.streams import generator
from palimpsest.core.tables import TABLES

N_STAGES = N_TASKS = 20
PATH = "evaluation/m/u/predictions.parquet"
SCHEMA = TABLES["predictions"].schema


def main() -> None:
    """Make the file, count it, and say how long that took and what memory it needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10**8)
    given = parser.parse_args()
    n_samples = given.rows // (N_STAGES * N_TASKS)
    make(given.folder / PATH, n_samples)
    show("made up", (given.folder / PATH).stat().st_size / 2**20, "MiB")
    record = {"sha256": hash_file(given.folder / PATH)}
    write_atomically(record_path(given.folder, PATH), canonical_json(record))
    show("memory before", peak_mebibytes(), "MiB")
    began, processor = time.monotonic(), time.process_time()
    trained = {stage: f"t{stage}" for stage in range(1, N_STAGES + 1)}
    job = Job(given.folder, "benchmark", code="c", environment="e")
    found = matrix(job.read_batches(PATH, "predictions", COLUMNS), "class_incremental", trained)
    show("counted", time.monotonic() - began, "s")
    show("processor", time.process_time() - processor, "s")
    show("peak memory", peak_mebibytes(), "MiB")
    assert sum(found["n_total"]) == 2 * n_samples * N_STAGES * N_TASKS
    shutil.rmtree(given.folder)


def make(place: Path, n_samples: int) -> None:
    """Write predictions in the order of the key, one stage and task after the other, in whole row groups."""
    place.parent.mkdir(parents=True)
    waiting: list[pa.Table] = []
    with open(place, "wb") as file, open_writer(file, SCHEMA) as writer:
        for stage in range(1, N_STAGES + 1):
            for task in sorted(f"t{task}" for task in range(1, N_TASKS + 1)):
                waiting.append(cell(stage, task, n_samples))
                if sum(map(len, waiting)) >= ROW_GROUP:
                    together = pa.concat_tables(waiting)
                    writer.write_table(together.slice(0, ROW_GROUP), row_group_size=ROW_GROUP)
                    waiting = [together.slice(ROW_GROUP)]
        writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP)


def cell(stage: int, task: str, n: int) -> pa.Table:
    """Predictions after one stage on one task, of 40 classes."""
    draw = generator("benchmark", "predictions", stage, task)
    label = draw.integers(0, 40, n, dtype=np.int32)
    log_probability = -draw.standard_exponential(n, dtype=np.float32)
    right = draw.random(n, dtype=np.float32) < 0.7
    columns = {
        "stage": pa.repeat(pa.scalar(stage, pa.int32()), n),
        "task": pa.repeat(pa.scalar(task), n),
        "sample": np.arange(n),
        "label": label,
        "predicted": np.where(right, label, 0).astype(np.int32),
        "predicted_in_task": label,
        "label_log_probability": log_probability,
        "label_log_probability_in_task": log_probability / 2,
    }
    return pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()})


def peak_mebibytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(name: str, value: float, unit: str) -> None:
    """One line of the result."""
    print(f"{name:16} {value:10.1f} {unit}", flush=True)


if __name__ == "__main__":
    print(f"row groups of {ROW_GROUP} rows, read {ROWS_AT_ONCE} at a time")
    main()
