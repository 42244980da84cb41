"""`palimpsest metrics`: every metric of matrices from anywhere, and what a metric means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

REFERENCE_HELP = "of each task: a number, numbers separated by commas, or a file of them"


def command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="CSV, JSON, Parquet or .npy: a square table (rows: stages, columns: tasks), or rows with the columns "
            "stage, task, value and, for several runs, run."
        ),
    ] = None,
    explain: Annotated[
        str | None, typer.Option(help="Instead: say what a metric means and how other programs differ.")
    ] = None,
    random_init: Annotated[str | None, typer.Option(help=f"Accuracy of an untrained model {REFERENCE_HELP}.")] = None,
    isolated: Annotated[
        str | None, typer.Option(help=f"Accuracy of a model trained on the task alone {REFERENCE_HELP}.")
    ] = None,
    joint: Annotated[
        str | None,
        typer.Option(
            help=f"Accuracy of a model trained on all tasks at once {REFERENCE_HELP}; or a square table whose row k is "
            "that of a model trained on the first k tasks."
        ),
    ] = None,
    n_total: Annotated[str | None, typer.Option(help="Test samples of each task: numbers separated by commas.")] = None,
    protocol: Annotated[
        str, typer.Option(help="class_incremental, task_incremental or domain_incremental.")
    ] = "unknown",
    percent: Annotated[
        bool, typer.Option("--percent", help="All accuracies are percent instead of fractions.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write every value to a file: .csv, .json, .parquet or .tex.")
    ] = None,
) -> None:
    """Compute every metric of accuracy matrices (rows: stages, columns: tasks), or explain one."""
    from rich.console import Console

    from palimpsest.cli import metric_tables

    console = Console()
    if explain is not None:
        console.print(metric_tables.explanation(explain), markup=False, highlight=False, soft_wrap=True)
        return
    given = {"random_init": random_init, "isolated": isolated, "joint": joint, "n_total": n_total}
    rows = metric_tables.rows_of_files(files or [], given, protocol, percent)
    metric_tables.show(console, rows)
    if output is not None:
        metric_tables.write(output, rows)
        console.print(f"{len(rows)} values written to {output}", markup=False, highlight=False)
