"""Metrics of files on the screen and in LaTeX, and what a metric means."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.core.numbers import is_missing, points
from palimpsest.core.numbers import percent as in_percent
from palimpsest.metrics._declaration import Elsewhere
from palimpsest.metrics._definitions import equality
from palimpsest.metrics._describe import Description, describe
from palimpsest.metrics._evaluate import declaration, needs, no_input
from palimpsest.metrics._matrices import Rows, matrix_rows, read_all, read_references
from palimpsest.report.escape import latex

# So many runs are shown side by side; of more, a summary.
SIDE_BY_SIDE = 4


def rows_of_files(files: Sequence[Path], given: Mapping[str, str | None], protocol: str, percent: bool) -> Rows:
    """Rows of every metric of every matrix in some files.

    Args:
        files: what `read_matrices` reads.
        given: what the user gave for `random_init`, `isolated`, `joint` and `n_total`: numbers or a file.
        protocol: under which the predictions were scored.
        percent: whether accuracies are percent.

    Raises:
        MatrixError: a file is not what it should be, or references do not fit the matrices.
    """
    references = read_references(given, percent)
    return [row for matrix in read_all(files, percent) for row in matrix_rows(matrix, references, protocol)]


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
    return in_percent(value, 2) if described.is_accuracy else points(value, 2)


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


def latex_table(table: Rows) -> bytes:
    """The values that there are, as a `tabular`."""
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
