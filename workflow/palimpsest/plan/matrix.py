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
    there = {stage["stage"]: _reachable(spec, stage) for stage in spec["stages"]}
    limited = [spec["protocol"]] if spec["evaluation_mask"] == "seen" else []
    limited = [spec["protocol"], "task_incremental"] if spec["model"]["head"] == "expanding" else limited
    return matrix(predictions, spec["protocol"], trained, dict.fromkeys(limited, there))


def _reachable(spec: dict[str, Any], stage: dict[str, Any]) -> list[str]:
    """Tasks all of whose outputs belong to tasks that the model of a stage was trained on."""
    outputs = {output for task in seen_tasks(spec["stages"], stage) for output in spec["tasks"][task]}
    return [task for task, own in spec["tasks"].items() if outputs.issuperset(own)]
