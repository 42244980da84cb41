"""`palimpsest metrics`: every metric of matrices from anywhere, and what a metric means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.sources import Isolated, Joint, NTotal, Percent, RandomInit


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
    random_init: RandomInit = None,
    isolated: Isolated = None,
    joint: Joint = None,
    n_total: NTotal = None,
    protocol: Annotated[
        str, typer.Option(help="class_incremental, task_incremental or domain_incremental.")
    ] = "unknown",
    percent: Percent = False,
    output: Annotated[Path | None, typer.Option(help="Write it to a file too: .csv, .json, .parquet, .tex.")] = None,
) -> None:
    """Compute every metric of accuracy matrices (rows: stages, columns: tasks), or explain one."""
    from rich.console import Console

    from palimpsest.cli import metric_tables
    from palimpsest.cli.output import require_kind, write

    console = Console()
    if explain is not None:
        console.print(metric_tables.explanation(explain), markup=False, highlight=False, soft_wrap=True)
        return
    require_kind(output)
    given = {"random_init": random_init, "isolated": isolated, "joint": joint, "n_total": n_total}
    rows = metric_tables.rows_of_files(files or [], given, protocol, percent)
    metric_tables.show(console, rows)
    if output is not None:
        write(output, "metrics", rows, lambda: metric_tables.latex_table(rows))
        console.print(f"{len(rows)} values written to {output}", markup=False, highlight=False)
