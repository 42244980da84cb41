"""Metrics of files on the screen and as files: CSV, JSON, Parquet, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.core.artifact import encode_table, write_atomically
from palimpsest.core.errors import MatrixError
from palimpsest.core.numbers import is_missing, percent, points
from palimpsest.core.tables import TABLES
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Elsewhere, Inputs, at_last_stage
from palimpsest.metrics._definitions import equality
from palimpsest.metrics._describe import Description, describe
from palimpsest.metrics._evaluate import declaration, needs, no_input, rows
from palimpsest.metrics._files import NamedMatrix, read_matrices, read_values
from palimpsest.report.escape import csv_cell, latex

Rows = list[dict[str, Any]]
COLUMNS = ("run", "protocol", "metric", "index", "task", "value", "unit", "direction", "missing")
# So many runs are shown side by side; of more, a summary.
SIDE_BY_SIDE = 4


def rows_of_files(files: Sequence[Path], given: Mapping[str, str | None], protocol: str, in_percent: bool) -> Rows:
    """Rows of every metric of every matrix in some files.

    Args:
        files: what `read_matrices` reads.
        given: what the user gave for `random_init`, `isolated`, `joint` and `n_total`: numbers or a file.
        protocol: under which the predictions were scored.
        in_percent: whether accuracies are percent.

    Raises:
        MatrixError: a file is not what it should be, or references do not fit the matrices.
    """
    matrices = [matrix for file in files for matrix in read_matrices(file, in_percent)]
    _require_matrices(matrices)
    references = {
        name: _numbers(name, text, in_percent and name != "n_total") for name, text in given.items() if text is not None
    }
    return [row for matrix in matrices for row in rows_of_matrix(matrix, references, protocol)]


def rows_of_matrix(matrix: NamedMatrix, references: Mapping[str, np.ndarray], protocol: str) -> Rows:
    """Rows of every metric of one matrix, with the names of its run and its tasks."""
    fitting = _fitting(references, len(matrix.tasks))
    inputs = Inputs(matrix.accuracy, protocol, **fitting)
    own = {"run": matrix.name, "protocol": protocol}
    return [
        {**own, **row, "task": None if row["task"] is None else matrix.tasks[row["task"] - 1]}
        for name in METRICS.names()
        for row in rows(name, inputs)
    ]


def _require_matrices(matrices: Sequence[NamedMatrix]) -> None:
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


def _numbers(name: str, text: str, in_percent: bool) -> np.ndarray:
    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        if name == "n_total":
            raise _misfit(name, "whole numbers separated by commas", text) from None
        return read_values(Path(text), in_percent)
    return numbers / 100 if in_percent else numbers


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


def show(console: Any, table: Rows) -> None:
    """Print the values, a row for each metric, and below them why some are missing.

    Many runs are shown as mean ± SD (divisor n − 1) with the number of runs that have a value: of each method, where
    the runs are named METHOD/UNIT.
    """
    from rich.markup import escape
    from rich.table import Table

    columns = _columns(list(dict.fromkeys(row["run"] for row in table)))
    by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table:
        by_place.setdefault((row["metric"], row["index"], row["task"]), {})[row["run"]] = row["value"]
    shown = Table()
    for heading in ("metric", "", *columns):
        shown.add_column(escape(heading), justify="right" if heading in columns else "left")
    for (metric, index, task), of_runs in by_place.items():
        if any(not is_missing(value) for value in of_runs.values()):
            cells = [_cell(metric, [of_runs.get(run) for run in runs]) for runs in columns.values()]
            shown.add_row(metric, escape(_place(metric, index, task)), *cells)
    console.print(shown)
    console.print("Accuracies in percent; differences of accuracies in percentage points, with their sign.")
    for reason, metrics in _why_missing(table).items():
        console.print(f"– {', '.join(metrics)}: {reason}", markup=False, highlight=False)


def _columns(runs: list[str]) -> dict[str, list[str]]:
    """The runs behind each column: one each, or all of a method, or all."""
    if len(runs) <= SIDE_BY_SIDE:
        return {run: [run] for run in runs}
    if not all("/" in run for run in runs):
        return {f"{len(runs)} runs": runs}
    methods = dict.fromkeys(run.split("/")[0] for run in runs)
    return {method: [run for run in runs if run.split("/")[0] == method] for method in methods}


def _cell(metric: str, numbers: Sequence[float | None]) -> str:
    known = np.array([number for number in numbers if not is_missing(number)])
    if len(numbers) == 1 or not len(known):
        return _value(metric, known[0] if len(known) else None)
    sd = known.std(ddof=1) if len(known) > 1 else None
    return f"{_value(metric, known.mean())} ± {_value(metric, sd).removeprefix('+')} ({len(known)})"


def _value(metric: str, value: float | None) -> str:
    described = declaration(metric)
    if described.unit == "ratio":
        return "–" if is_missing(value) else f"{value:.3f}"
    return percent(value, 2) if described.is_accuracy else points(value, 2)


def _place(metric: str, index: int | None, task: str | None) -> str:
    if task is not None:
        return task
    letter = declaration(metric).index
    return "" if index is None else f"{'β' if letter == 'beta' else letter} = {index}"


def _why_missing(table: Rows) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in table:
        metrics = found.setdefault(row["missing"], []) if row["missing"] else []
        if row["metric"] not in metrics:
            metrics.append(row["metric"])
    return found


def write(path: Path, table: Rows) -> None:
    """Write rows to a file of the kind that its name says.

    Raises:
        MatrixError: no such kind.
    """
    encoders = {".csv": _csv, ".json": _json, ".parquet": _parquet, ".tex": _latex}
    if path.suffix.lower() not in encoders:
        raise MatrixError(
            "a file of a kind that is not written",
            where="--output",
            expected=f"a name that ends in {', '.join(encoders)}",
            got=path.name,
            next="choose another name",
        )
    write_atomically(path, encoders[path.suffix.lower()](table))


def _csv(table: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *([csv_cell(row[column]) for column in COLUMNS] for row in table)])
    return text.getvalue().encode()


def _json(table: Rows) -> bytes:
    plain = [{column: row[column] for column in COLUMNS} for row in table]
    return (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode()


def _parquet(table: Rows) -> bytes:
    columns = {column: [row[column] for row in table] for column in TABLES["metrics"].schema.names}
    return encode_table("metrics", columns, {"rule": "metrics of files"})[0]


def _latex(table: Rows) -> bytes:
    lines = [r"\begin{tabular}{lllr}", r"\hline", r"run & metric &  & value \\", r"\hline"]
    for row in table:
        if not is_missing(row["value"]):
            place = _place(row["metric"], row["index"], row["task"])
            cells = [row["run"], describe(row["metric"]).label, place, _value(row["metric"], row["value"])]
            lines.append(" & ".join(latex(cell).replace("β", r"$\beta$") for cell in cells) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""]).encode()


def explanation(name: str) -> str:
    """What a metric means, for the screen: definition, range, when it is undefined, reference, and other programs.

    Raises:
        StudyError: there is no such metric.
    """
    described, metric = describe(name), declaration(name)
    low, high = (f"{end:g}".replace("-", "−") for end in metric.range)
    lines = [
        f"{name}: {described.label}",
        f"  definition  {described.definition}",
        f"  range       {low} to {high} ({metric.unit})",
        f"  direction   {metric.direction} is better",
        f"  undefined   {'; '.join(_undefined(described))}",
        f"  reference   {described.reference}",
    ]
    if described.elsewhere:
        lines += ["  other programs", *(line for fact in described.elsewhere for line in _fact(fact))]
    return "\n".join(lines)


def _undefined(described: Description) -> list[str]:
    metric = declaration(described.name)
    reasons = [f"T < {metric.min_tasks}"] if metric.min_tasks > 1 else []
    reasons += [f"{protocol}: {reason}" for protocol, reason in metric.undefined_in.items()]
    reasons += dict.fromkeys(no_input(need) for need in needs(described.name) if need != "accuracy")
    reasons += [metric.undefined_where] if metric.undefined_where else []
    reasons += ["a task is trained more than once"] if metric.square else []
    return [*reasons, "a cell that the formula needs was not measured"]


def _fact(fact: Elsewhere) -> list[str]:
    text = f"{fact.program}, {fact.name}: {equality(fact)}{'; ' + fact.remark if fact.remark else ''} [{fact.place}]"
    return textwrap.wrap(text, 116, initial_indent="    - ", subsequent_indent="      ")
