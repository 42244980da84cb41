"""The accuracy matrix of a run: which of its predictions count, as its plan has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from palimpsest.core.matrix import matrix
from palimpsest.plan.schedule import seen_tasks


def matrix_of_run(predictions: Iterable[pa.RecordBatch], spec: dict[str, Any]) -> dict[str, list[Any]]:
    """The accuracy matrix of predictions, as columns of the table `matrix` (see `core.matrix`).

    Under the mask `seen`, a task that was not trained yet would score 0 by construction: its cell is left out, as not
    measured.
    """
    stages = spec["stages"]
    trained = {stage["stage"]: stage["task"] for stage in stages}
    choosable = {stage["stage"]: seen_tasks(stages, stage) for stage in stages}
    return matrix(predictions, spec["protocol"], trained, choosable if spec["evaluation_mask"] == "seen" else None)
