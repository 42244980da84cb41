"""Predictions counted as they stream by: the same matrix, bit for bit, whatever the batches."""

from __future__ import annotations

from math import fsum

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palimpsest.core import artifact
from palimpsest.core.artifact import Job
from palimpsest.core.errors import ArtifactError
from palimpsest.core.matrix import COLUMNS, matrix
from palimpsest.core.streams import generator
from palimpsest.core.tables import TABLES

TRAINED = {1: "t1", 2: "t2"}
SCHEMA = TABLES["predictions"].schema


def predictions(n: int, log_probabilities: np.ndarray | None = None) -> pa.Table:
    draw = generator("test", "predictions")
    label = draw.integers(0, 4, n)
    values = -draw.exponential(3.0, n) if log_probabilities is None else log_probabilities
    columns = {
        "stage": draw.integers(1, 3, n),
        "task": [f"t{task}" for task in draw.integers(1, 3, n)],
        "sample": np.arange(n),
        "label": label,
        "predicted": draw.integers(0, 4, n),
        "predicted_in_task": draw.integers(0, 4, n),
        "label_log_probability": values.astype(np.float32),
        "label_log_probability_in_task": (values / 2).astype(np.float32),
    }
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names})


def by_hand(table: pa.Table) -> list[tuple]:
    rows = table.to_pylist()
    chosen = {"task_incremental": "_in_task", "class_incremental": ""}
    return [
        (
            protocol,
            stage,
            TRAINED[stage],
            task,
            sum(row[f"predicted{end}"] == row["label"] for row in cell),
            len(cell),
            fsum(-row[f"label_log_probability{end}"] for row in cell),
        )
        for protocol, end in chosen.items()
        for stage in (1, 2)
        for task in ("t1", "t2")
        for cell in [[row for row in rows if (row["stage"], row["task"]) == (stage, task)]]
    ]


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_the_matrix_is_the_same_whatever_the_batches(size):
    """Counts and the exactly rounded sums of losses are those of all rows at once."""
    table = predictions(2000)
    found = matrix(table.to_batches(max_chunksize=size), "class_incremental", TRAINED)
    assert list(zip(*found.values(), strict=True)) == by_hand(table)


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_a_task_that_could_not_be_chosen_has_no_cell_over_all_outputs(size):
    """Its choice within the task is measured all the same."""
    table = predictions(200)
    choosable = {"class_incremental": {1: ["t1"], 2: ["t1", "t2"]}}
    found = matrix(table.to_batches(max_chunksize=size), "class_incremental", TRAINED, choosable)
    unseen = ("class_incremental", 1, "t2")
    wanted = [row for row in by_hand(table) if (row[0], row[1], row[3]) != unseen]
    assert list(zip(*found.values(), strict=True)) == wanted


def test_a_sum_of_losses_is_rounded_once():
    """A large, many tiny and subnormal values: adding them one after the other would lose the small ones."""
    tiny = np.full(2000, -(2.0**-30))
    tiny[::50] = -(2.0**24)
    tiny[1::50] = -(2.0**-149)
    table = predictions(2000, tiny)
    found = matrix(table.to_batches(max_chunksize=100), "class_incremental", TRAINED)
    assert list(zip(*found.values(), strict=True)) == by_hand(table)


def test_no_predictions_have_an_empty_matrix():
    assert matrix([], "task_incremental", {}) == {name: [] for name in TABLES["matrix"].schema.names}


def write(folder, n: int) -> Job:
    job = Job(folder, "evaluate", code="c", environment="e")
    job.write_table("evaluation/m/u/predictions.parquet", "predictions", predictions(n))
    return Job(folder, "look", code="c", environment="e")


def test_predictions_are_counted_from_their_file(tmp_path, monkeypatch):
    """Read in batches that end within row groups, and become the job's parent."""
    monkeypatch.setattr(artifact, "ROW_GROUP", 300)
    monkeypatch.setattr(artifact, "ROWS_AT_ONCE", 128)
    job = write(tmp_path, 1000)
    assert pq.ParquetFile(tmp_path / "evaluation/m/u/predictions.parquet").num_row_groups == 4
    batches = job.read_batches("evaluation/m/u/predictions.parquet", "predictions", COLUMNS)
    found = matrix(batches, "class_incremental", TRAINED)
    assert list(zip(*found.values(), strict=True)) == by_hand(predictions(1000))
    assert list(job.parents) == ["evaluation/m/u/predictions.parquet"]


def test_a_file_that_changed_gives_no_rows(tmp_path):
    job = write(tmp_path, 10)
    place = tmp_path / "evaluation/m/u/predictions.parquet"
    place.write_bytes(place.read_bytes() + b" ")
    with pytest.raises(ArtifactError, match="not the one that was written"):
        next(job.read_batches("evaluation/m/u/predictions.parquet", "predictions"))


def test_a_file_of_another_schema_gives_no_rows(tmp_path):
    with pytest.raises(ArtifactError, match="does not have the columns"):
        next(write(tmp_path, 10).read_batches("evaluation/m/u/predictions.parquet", "matrix"))
