"""Every metric of matrices from anywhere, with the references that belong to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.core.errors import MatrixError
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Inputs, at_last_stage, require_protocol
from palimpsest.metrics._evaluate import rows
from palimpsest.metrics._files import NamedMatrix, read_matrices, read_values

Rows = list[dict[str, Any]]


def read_all(files: Sequence[Path], percent: bool = False) -> list[NamedMatrix]:
    """The matrices of several files.

    Raises:
        MatrixError: a file is not what it should be, there is none, or two matrices have one name.
    """
    matrices = [matrix for file in files for matrix in read_matrices(file, percent)]
    names = [matrix.name for matrix in matrices]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled or not names:
        raise MatrixError(
            "no matrix was given" if not names else "several matrices of one name",
            where="the command line",
            expected="files, each with another name or with other runs",
            got=", ".join(doubled) or "none",
            next="palimpsest metrics FILE…, or --explain METRIC",
        )
    return matrices


def read_references(given: Mapping[str, str | None], percent: bool) -> dict[str, np.ndarray]:
    """What a user gave for `random_init`, `isolated`, `joint` and `n_total`: numbers, or the name of a file of them.

    Raises:
        MatrixError: they are no numbers.
    """
    return {name: _numbers(name, text, percent) for name, text in given.items() if text is not None}


def matrix_rows(matrix: NamedMatrix, references: Mapping[str, np.ndarray], protocol: str) -> Rows:
    """Rows of every metric of one matrix, with the names of its run and its tasks.

    Raises:
        MatrixError: there is no such protocol, or the references do not fit the matrix.
    """
    require_protocol(protocol)
    inputs = Inputs(matrix.accuracy, protocol, **_fitting(references, len(matrix.tasks)))
    own = {"run": matrix.name, "protocol": protocol}
    return [
        {**own, **row, "task": None if row["task"] is None else matrix.tasks[row["task"] - 1]}
        for name in METRICS.names()
        for row in rows(name, inputs)
    ]


def _numbers(name: str, text: str, percent: bool) -> np.ndarray:
    counts = name == "n_total"
    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        if counts:
            raise _misfit(name, "whole numbers separated by commas", text) from None
        return read_values(Path(text), percent)
    return numbers / 100 if percent and not counts else numbers


def _fitting(references: Mapping[str, np.ndarray], n_tasks: int) -> dict[str, np.ndarray]:
    """References as inputs: one number holds for each task, and a joint model gives both of its inputs."""
    found = {}
    for name, numbers in references.items():
        shapes = [(1,), (n_tasks,), *([(n_tasks, n_tasks)] if name == "joint" else [])]
        if numbers.shape not in shapes:
            raise _misfit(name, f"1 or {n_tasks} numbers, as many as there are tasks", f"shape {numbers.shape}")
        found[name] = np.full(n_tasks, numbers[0]) if numbers.shape == (1,) else numbers
    return {**found, **(_joint(found["joint"]) if "joint" in found else {})}


def _joint(numbers: np.ndarray) -> dict[str, np.ndarray]:
    """`joint` and `joint_at_k`: a model of all tasks is a*_k at the last stage only, a table has one for each stage."""
    if numbers.ndim == 2:
        return {"joint": numbers[-1], "joint_at_k": numbers.diagonal().copy()}
    return {"joint": numbers, "joint_at_k": at_last_stage(numbers)}


def _misfit(name: str, expected: str, got: str) -> MatrixError:
    return MatrixError(
        "a reference does not fit the matrix",
        where=f"--{name.replace('_', '-')}",
        expected=expected,
        got=got,
        next="give the numbers in the order of the tasks",
    )
