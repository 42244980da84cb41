"""Probes and the stream: they are right, and they leave no trace in the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from palimpsest.core.artifact import Job, read_plain_table
from tiny import (
    fresh_model,
    new_study,
    recording_of,
    spec_of,
    train,
)

RUN = "m/s0-o0"
REPLAY = ("replay", {"buffer_bytes": 17 * 20, "replayed": 4})
EVERYTHING = recording_of(prequential=True, first_batches=3, log=True, every=5, held_out_every=20, tasks="all")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples; every test uses run names of its own."""
    return new_study(tmp_path_factory.mktemp("tiny"), n_validation=3)


def table(study: Path, name: str, run: str, stage: int | None = None, **where: Any) -> list[dict[str, Any]]:
    """Rows of what a stage recorded, or a whole run; those with the given values."""
    path = study / f"runs/{run}/{'' if stage is None else f'stage-{stage}.'}{name}.parquet"
    rows = read_plain_table(path, name).to_pylist()
    return [row for row in rows if all(row[column] == value for column, value in where.items())]


def unprobed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Checkpoints and steps of a run."""
    return {name: content for name, content in files.items() if name.endswith((".safetensors", ".steps.parquet"))}


def test_before_the_first_update_the_model_is_the_initial_one(study):
    """Z_0 of the first stage is the accuracy and the loss of the initial weights, counted here by hand."""
    spec = spec_of()
    train(study, spec, "zero/s0-o0", recording=recording_of(first_batches=0, tasks="all"))
    samples, inputs = Job(study, "t", "", "").read_table("data/samples.parquet", "samples"), None
    inputs = torch.from_numpy(np.load(study / "data/inputs.npy"))
    model = fresh_model(spec)
    for task in spec["order"]:
        rows = [i for i, row in enumerate(samples.to_pylist()) if (row["split"], row["task"]) == ("test", task)]
        labels = torch.tensor(samples["label"].to_numpy()[rows].astype(np.int64))
        with torch.no_grad():
            outputs = model(inputs[rows] / 255)
        (row,) = table(study, "probes", "zero/s0-o0", 1, task=task, group="all", protocol="class_incremental")
        assert (row["batch"], row["samples_seen"], row["split"]) == (0, 0, "test")
        assert (row["n_correct"], row["n_total"]) == (int((outputs.argmax(1) == labels).sum()), 10)
        loss = torch.nn.functional.cross_entropy(outputs, labels, reduction="sum").item()
        assert row["loss_sum"] == pytest.approx(loss, rel=1e-5)
