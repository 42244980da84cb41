"""Comparisons of methods and ranks over studies, on the screen and in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palimpsest.core.numbers import is_missing, p_value, percent, points, statistic
from palimpsest.metrics._describe import describe
from palimpsest.metrics._evaluate import declaration
from palimpsest.report import tables
from palimpsest.statistics import wording

Row = dict[str, Any]


def comparison(row: Row) -> list[str]:
    """A row of the table `comparisons` in words: the verdict, the numbers behind it, and what it may be used for."""
    return [
        wording.sentence(row),
        f"{wording.quantity(row)}; {wording.preference(row)}",
        wording.evidence(row),
        f"worst task: {wording.worst_task(row)}",
        f"other intervals, percentage points: {wording.other_intervals(row)}",
        *([f"  {row['diagnostics']}"] if row["diagnostics"] else []),
        f"Exploratory: {row['reason']}.",
    ]


def comparison_latex(rows: Sequence[Row]) -> bytes:
    """The comparisons as a table."""
    return tables.comparisons_tex(rows)


def ranks(rows: Sequence[Row]) -> list[str]:
    """Rows of the table `ranks` in words: each study's results, mean ranks, and the test."""
    (test,) = (row for row in rows if row["kind"] == "test")
    lines = [f"{test['metric']}: results of each study ({_unit(test)}), and ranks, 1 is best"]
    for study in dict.fromkeys(row["study"] for row in rows if row["kind"] == "study"):
        of_study = [row for row in rows if row["study"] == study]
        lines.append(f"  {study}, {wording.protocol(of_study[0]['protocol'])}:")
        lines += [f"    {row['rank']:g}  {row['method']}: {_result(row)}" for row in _by_rank(of_study)]
    lines.append(f"mean ranks over {test['n_studies']} studies:")
    means = _by_rank([row for row in rows if row["kind"] == "mean rank"])
    lines += [f"  {row['method']}: {row['rank']:.2f}" for row in means]
    lines.append(_tested(test))
    pairs = (row for row in rows if row["kind"] == "pair")
    lines += [
        f"  {row['method']} and {row['against']}: p {p_value(row['p'])} (Nemenyi, an approximation for many studies)"
        for row in pairs
    ]
    return [*lines, "Exploratory: no plan announced it. Accuracies are not pooled over studies."]


def ranks_latex(rows: Sequence[Row]) -> bytes:
    """Methods by studies: mean and SD with the rank, and the mean rank; the test in the caption."""
    studies = list(dict.fromkeys(row["study"] for row in rows if row["kind"] == "study"))
    means = _by_rank([row for row in rows if row["kind"] == "mean rank"])
    cells = {(row["study"], row["method"]): row for row in rows if row["kind"] == "study"}
    (test,) = (row for row in rows if row["kind"] == "test")
    body = [
        [
            row["method"],
            *(f"{_spread(cells[study, row['method']])} ({cells[study, row['method']]['rank']:g})" for study in studies),
            f"{row['rank']:.2f}",
        ]
        for row in means
    ]
    label = describe(test["metric"]).label
    caption = f"{label}, mean ± SD ({_unit(test)}) with the rank in each study. {_tested(test)}."
    return tables.latex_table(["method", *studies, "mean rank"], [body], caption, n_text_columns=1)


def _by_rank(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["rank"], row["method"]))


def _tested(test: Row) -> str:
    if is_missing(test["p"]):
        return f"Not tested: {test['reason']}"
    how = "counted over all rankings" if test["exact"] else "chi-squared approximation"
    least = f"least possible {test['smallest_p']:.2g}"
    return f"Friedman's chi-squared {statistic(test['statistic'])}, p {p_value(test['p'])} ({how}; {least})"


def _result(row: Row) -> str:
    interval = f", 95 % interval {_value(row, row['ci_low'])} to {_value(row, row['ci_high'])}" if row["n"] > 1 else ""
    failed = f", {row['n_failed']} failed" if row["n_failed"] else ""
    return f"{_spread(row)}{interval}, n = {row['n']}{failed}"


def _spread(row: Row) -> str:
    return f"{_value(row, row['mean'])} ± {_value(row, row['sd']).removeprefix('+')}"


def _value(row: Row, value: float | None) -> str:
    metric = declaration(row["metric"])
    if metric.unit == "ratio":
        return "–" if is_missing(value) else f"{value:.3f}"
    return percent(value) if metric.is_accuracy else points(value)


def _unit(test: Row) -> str:
    metric = declaration(test["metric"])
    return metric.unit if metric.unit == "ratio" else "percent" if metric.is_accuracy else "percentage points"
