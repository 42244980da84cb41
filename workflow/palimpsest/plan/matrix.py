"""The accuracy matrix of a run: which of its predictions count, as its plan has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from palimpsest.core.matrix import matrix
from palimpsest.plan.schedule import seen_tasks


def matrix_of_run(predictions: Iterable[pa.RecordBatch], spec: dict[str, Any]) -> dict[str, list[Any]]:
    """The accuracy matrix of predictions, as columns of the table `matrix` (see `core.matrix`).

    Under the mask `seen`, and with outputs that come with their task, a task that was not trained yet would score 0 by
    construction: its cell is left out, as not measured.
    """
    trained = {stage["stage"]: stage["task"] for stage in spec["stages"]}
    measured = {
        protocol: {stage["stage"]: measured_tasks(spec, stage, protocol) for stage in spec["stages"]}
        for protocol in (spec["protocol"], "task_incremental")
    }
    return matrix(predictions, spec["protocol"], trained, measured)


def measured_tasks(spec: dict[str, Any], stage: dict[str, Any], protocol: str) -> list[str]:
    """Tasks on which accuracy after or in a stage is measured; on the others it could only be 0.

    Args:
        spec, stage: the run's specification, and the stage in it.
        protocol: under which predictions are read.
    """
    comes_with_its_task = spec["model"]["head"] == "expanding"
    if not comes_with_its_task and (protocol != spec["protocol"] or spec["evaluation_mask"] != "seen"):
        return list(spec["tasks"])
    outputs = {output for task in seen_tasks(spec["stages"], stage) for output in spec["tasks"][task]}
    return [task for task, own in spec["tasks"].items() if outputs.issuperset(own)]
