"""Accuracy matrices out of files that anyone may have written: CSV, JSON, Parquet, NumPy.

A file holds one plain T × T table (rows: stages, columns: tasks; a first row of texts names the tasks), or rows in long
form with the columns `stage`, `task`, `value` and, where they are wanted, `run` (or `method` and `unit`),
`trained_task`, `seed` and `order`. Cells above the diagonal may be absent, those on it and below may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.metrics._cells import (
    ABOUT,
    file_error,
    number_in,
    parsed,
    read_content,
    require_square,
    text_in,
    without_header,
)


@dataclass(frozen=True)
class NamedMatrix:
    """The matrix of one run.

    Args:
        name: of the run.
        accuracy: fractions `[stage, task]`, NaN where nothing was measured.
        tasks: names of the tasks, in the order in which they were trained.
        about: what the file says besides: `method`, `unit`, `seed`, `order`.
    """

    name: str
    accuracy: np.ndarray
    tasks: tuple[str, ...]
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One row of a file in long form, with its place for errors."""

    where: str
    run: str
    stage: int
    task: str
    value: float
    trained_task: str | None
    about: Mapping[str, str]


def read_matrices(path: Path, percent: bool = False) -> list[NamedMatrix]:
    """All matrices of a file, in the order of their first row.

    Args:
        path: a file whose name ends in .csv, .json, .parquet or .npy.
        percent: whether values are percent instead of fractions.

    Raises:
        MatrixError: the file cannot be read as matrices; names row and column where there is one.
    """
    matrices = _read(path, 100.0 if percent else 1.0)
    largest = max(np.nanmax(matrix.accuracy) for matrix in matrices)
    if percent and 0 < largest <= 0.01:
        raise file_error(
            "fractions in the place of percentages",
            path,
            "a value above 1",
            f"{100 * largest:g} as the largest value",
            "leave out --percent",
        )
    return matrices


def _read(path: Path, scale: float) -> list[NamedMatrix]:
    content = read_content(path)
    if isinstance(content, np.ndarray):
        return _from_arrays(path, content, scale)
    if content and isinstance(content[0], Mapping):
        return _from_rows(path, content, scale)
    return [_from_table(path, path.stem, content, scale)]


def read_values(path: Path, percent: bool = False) -> np.ndarray:
    """A list of accuracies, `[task]`, or a square table of them, `[stage, task]`; raises as `read_matrices`."""
    content = read_content(path)
    if isinstance(content, list) and content and all(not isinstance(row, list | Mapping) for row in content):
        content = [content]
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        raise file_error(
            "a reference is given as numbers", path, "a list of numbers, or a square table", "named columns"
        )
    rows = content if isinstance(content, np.ndarray) else without_header(path, content)[1]
    scale = 100.0 if percent else 1.0
    if len(rows) > 1 and all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]
    cells = [
        [number_in(value, f"{path}, row {k}, column {j}", scale) for j, value in enumerate(row, 1)]
        for k, row in enumerate(rows, 1)
    ]
    if len(cells) == 1:
        return np.array(cells[0])
    require_square(path, cells)
    return np.array(cells)


def _from_arrays(path: Path, array: np.ndarray, scale: float) -> list[NamedMatrix]:
    if array.ndim == 3:
        return [_from_table(path, f"{path.stem}[{i}]", matrix, scale) for i, matrix in enumerate(array)]
    return [_from_table(path, path.stem, np.atleast_2d(array), scale)]


def _from_table(path: Path, name: str, rows: Sequence[Sequence[Any]], scale: float) -> NamedMatrix:
    tasks, numbers = without_header(path, rows)
    first = len(rows) - len(numbers) + 1
    cells = [
        [number_in(value, f"{path}, row {k}, column {j}", scale) for j, value in enumerate(row, start=1)]
        for k, row in enumerate(numbers, start=first)
    ]
    require_square(path, cells, first)
    tasks = tasks or tuple(str(j) for j in range(1, len(cells) + 1))
    _require_lower(np.array(cells), lambda k, j: f"{path}, row {k + first}, column {j + 1}")
    return NamedMatrix(name, np.array(cells), tuple(tasks))


def _from_rows(path: Path, rows: Sequence[Mapping[str, Any]], scale: float) -> list[NamedMatrix]:
    by_run: dict[str, list[Cell]] = {}
    offset = 2 if path.suffix.lower() == ".csv" else 1
    for number, row in enumerate(rows, start=offset):
        cell = _cell(f"{path}, row {number}", row, scale)
        by_run.setdefault(cell.run, []).append(cell)
    return [_matrix(path, name, cells) for name, cells in by_run.items()]


def _cell(where: str, row: Mapping[str, Any], scale: float) -> Cell:
    about = {name: text_in(row[name], f"{where}, column {name}") for name in ABOUT if name in row}
    named = [about[name] for name in ("method", "unit") if name in about]
    stage = parsed(row["stage"])
    if stage is None or not float(stage).is_integer() or stage < 1:
        raise file_error("a stage that is no stage", f"{where}, column stage", "1, 2, 3, …", repr(row["stage"]))
    trained = row.get("trained_task")
    return Cell(
        where=where,
        run=about.get("run") or "/".join(named) or "run",
        stage=int(stage),
        task=text_in(row["task"], f"{where}, column task"),
        value=number_in(row["value"], f"{where}, column value", scale),
        trained_task=None if trained in (None, "") else str(trained).strip(),
        about=about,
    )


def _matrix(path: Path, name: str, cells: Sequence[Cell]) -> NamedMatrix:
    seen: dict[tuple[int, str], Cell] = {}
    for cell in cells:
        other = seen.setdefault((cell.stage, cell.task), cell)
        if other is not cell:
            expected = f"one value of run {name} for stage {cell.stage} and task {cell.task}; {other.where} has one"
            raise file_error("a cell that is given twice", cell.where, expected, "another one")
    about = _one_about(name, cells)
    tasks = _in_order(path, name, cells)
    accuracy = np.full((len(tasks), len(tasks)), np.nan)
    for (stage, task), cell in seen.items():
        if stage > len(tasks):
            expected = f"stages 1 to {len(tasks)}, as many as run {name} has tasks"
            raise file_error("a stage without a task", f"{cell.where}, column stage", expected, str(stage))
        accuracy[stage - 1, tasks.index(task)] = cell.value
    places = {(stage - 1, tasks.index(task)): cell.where for (stage, task), cell in seen.items()}
    _require_lower(
        accuracy, lambda k, j: places.get((k, j), f"{path}, run {name}") + f", stage {k + 1}, task {tasks[j]}"
    )
    return NamedMatrix(name, accuracy, tasks, about)


def _one_about(name: str, cells: Sequence[Cell]) -> Mapping[str, str]:
    for cell in cells:
        if cell.about != cells[0].about:
            raise file_error(
                "a run that contradicts itself",
                cell.where,
                f"{dict(cells[0].about)}, as in the first row of run {name}",
                str(dict(cell.about)),
            )
    return cells[0].about


def _in_order(path: Path, name: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    """The tasks as they were trained: by `trained_task`, else by number, else as they first appear in the file."""
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    trained = {(cell.stage, cell.trained_task) for cell in cells if cell.trained_task is not None}
    if trained:
        by_stage = dict(sorted(trained))
        if len(by_stage) < len(trained) or sorted(by_stage.values()) != sorted(tasks):
            expected = f"each of the tasks {', '.join(sorted(tasks))} trained at one stage"
            raise file_error(
                "an order that is no order",
                f"{path}, run {name}, column trained_task",
                expected,
                ", ".join(f"{task} at {stage}" for stage, task in sorted(trained)),
            )
        return tuple(by_stage.values())
    numbers = [parsed(task) for task in tasks]
    if all(number is not None for number in numbers):
        return tuple(task for _, task in sorted(zip(numbers, tasks, strict=True)))
    return tuple(tasks)


def _require_lower(accuracy: np.ndarray, where: Callable[[int, int], str]) -> None:
    absent = np.argwhere(np.isnan(accuracy) & np.tri(len(accuracy), dtype=bool))
    if len(absent):
        k, j = (int(at) for at in absent[0])
        expected = f"a value: a[{k + 1},{j + 1}] lies on or below the diagonal, its task was trained by then"
        raise file_error("a value is missing", where(k, j), expected, f"none ({len(absent)} missing in all)")
