"""Probes: accuracy on held-out samples while a stage trains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch

from palimpsest.core.inputs import Inputs
from palimpsest.core.matrix import read_as
from palimpsest.core.streams import generator
from palimpsest.core.tables import TABLES
from palimpsest.data.samples import Data
from palimpsest.models._network import task_positions
from palimpsest.plan.matrix import measured_tasks
from palimpsest.plan.probing import is_due
from palimpsest.plan.schedule import earlier_tasks
from palimpsest.training.predicting import Choice, Predictor

TAKEN = ("batch", "samples_seen", "n_correct", "loss_sum")
"""What is kept of a probe; the last two hold a value for each cell."""


@dataclass(frozen=True)
class HeldOut:
    """Held-out samples of one task.

    Args:
        inputs: of all samples.
        rows: which of them.
        labels: theirs, `[row]` int64.
        position: of the task.
    """

    inputs: Inputs
    rows: np.ndarray
    labels: np.ndarray
    position: int

    def predict(self, predictor: Predictor, size: int) -> dict[str, Choice]:
        """Choices by protocol, predicted `size` samples at a time."""
        parts = [slice(start, start + size) for start in range(0, len(self.rows), size)]
        found = [predictor(*self._batch(part)) for part in parts]
        return {protocol: Choice.joined([choices[protocol] for choices in found]) for protocol in found[0]}

    def _batch(self, part: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        labels = torch.from_numpy(self.labels[part])
        return torch.from_numpy(self.inputs[self.rows[part]]), labels, torch.full_like(labels, self.position)


class Probes:
    """The probes of one stage.

    A cell is a protocol and a task; one that could only be wrong, since no prediction may choose its outputs yet, is
    left out. The samples of a task are counted in the group `all`, and in `old` if it was learned in a stage from which
    this one descends, in `new` if it is learned for the first time: where each class belongs to one task, these are the
    old and the new classes.

    Args:
        data: the samples of the study.
        spec, stage: the run's specification, and the stage in it.
        section: the study's section `probes`.
        predictor: predicts with the run's model.
    """

    def __init__(
        self, data: Data, spec: dict[str, Any], stage: dict[str, Any], section: dict[str, Any], predictor: Predictor
    ) -> None:
        self.stage, self.section, self.predictor = stage["stage"], section, predictor
        self.size = spec["numerics"]["evaluation_batch_size"]
        # A union is named by its tasks in order: the newest one is the last.
        tasks = list(spec["tasks"]) if section["tasks"] == "all" else stage["tasks"][-1:]
        self.held_out = held_out(data, spec, tasks, section)
        self.cells = [
            (protocol, task)
            for protocol in read_as(spec["protocol"])
            for task in measured_tasks(spec, stage, protocol)
            if task in self.held_out
        ]
        self.groups = {task: _groups(spec, stage, task) for task in tasks}
        self.taken: dict[str, list[Any]] = {name: [] for name in TAKEN}

    def take_if_due(self, batch: int, before: int, seen: int) -> None:
        """Probe after `batch` mini-batches of the stage, if the schedule says so (`plan.probing.is_due`)."""
        if not is_due(self.section, batch, before, seen):
            return
        found = {task: samples.predict(self.predictor, self.size) for task, samples in self.held_out.items()}
        counts = [found[task][protocol].counts(self.held_out[task].labels) for protocol, task in self.cells]
        of_cells = [n_correct for n_correct, _, _ in counts], [loss_sum for _, _, loss_sum in counts]
        for name, value in zip(TAKEN, (batch, seen, *of_cells), strict=True):
            self.taken[name].append(value)

    def rows(self) -> dict[str, list[Any]]:
        """Columns of the table `probes`."""
        rows = [
            (
                *(self.stage, batch, seen, self.section["split"], protocol, task),
                *(n_correct, len(self.held_out[task].rows), None if math.isnan(loss_sum) else loss_sum, group),
            )
            for batch, seen, *of_cells in zip(*(self.taken[name] for name in TAKEN), strict=True)
            for (protocol, task), n_correct, loss_sum in zip(self.cells, *of_cells, strict=True)
            for group in self.groups[task]
        ]
        return {name: [row[at] for row in rows] for at, name in enumerate(TABLES["probes"].schema.names)}


def held_out(data: Data, spec: dict[str, Any], tasks: list[str], section: dict[str, Any]) -> dict[str, HeldOut]:
    """Samples of each task; at most so many as the section asks for, the same ones for all methods and orders."""
    table, inputs = data
    labels, positions, found = table["label"].to_numpy().astype(np.int64), task_positions(spec["tasks"]), {}
    for task in tasks:
        wanted = pc.and_(pc.equal(table["split"], section["split"]), pc.equal(table["task"], task))
        (rows,) = np.nonzero(wanted.to_numpy(zero_copy_only=False))
        if section["samples"] is not None and section["samples"] < len(rows):
            draws = generator("probe", spec["seed"], section["split"], task)
            rows = np.sort(draws.choice(rows, section["samples"], replace=False))
        found[task] = HeldOut(inputs, rows, labels[rows], positions[task])
    return found


def _groups(spec: dict[str, Any], stage: dict[str, Any], task: str) -> list[str]:
    """The groups in which the samples of a task are counted; one that is still to come is neither old nor new."""
    if task in earlier_tasks(spec["stages"], stage):
        return ["all", "old"]
    return ["all", "new"] if task in stage["tasks"] else ["all"]
