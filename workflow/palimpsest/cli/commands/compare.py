"""`palimpsest compare`: the paired comparison of two methods, on matrices from anywhere or a finished study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.sources import Isolated, Joint, NTotal, Percent, RandomInit


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, JSON or Parquet in long form: method, unit, stage, task, value; seed, order. "
            "Or the folder of a finished study, results/NAME."
        ),
    ],
    a: Annotated[str, typer.Option("--a", help="The first method.")],
    b: Annotated[str, typer.Option("--b", help="The method it is compared with: differences are A − B.")],
    metric: Annotated[str, typer.Option(help="What is compared.")] = "average_accuracy",
    index: Annotated[int | None, typer.Option(help="Stage k, for a metric with one value per stage.")] = None,
    alternative: Annotated[str, typer.Option(help="Of A − B: two-sided, greater or less.")] = "two-sided",
    alpha: Annotated[float, typer.Option(help="Error rate of the test.")] = 0.05,
    margin: Annotated[float | None, typer.Option(help="Equivalence margin δ, a fraction.")] = None,
    random_init: RandomInit = None,
    isolated: Isolated = None,
    joint: Joint = None,
    n_total: NTotal = None,
    protocol: Annotated[
        str | None, typer.Option(help="class_incremental, task_incremental or domain_incremental.")
    ] = None,
    percent: Percent = False,
    output: Annotated[Path | None, typer.Option(help="Write it to a file too: .csv, .json, .parquet, .tex.")] = None,
) -> None:
    """Compare two methods over the units that they share, by the test that a study would use."""
    from palimpsest.cli import comparison_tables
    from palimpsest.cli.output import require_kind, write
    from palimpsest.metrics._matrices import read_references
    from palimpsest.statistics import compare

    require_kind(output)
    given = {"random_init": random_init, "isolated": isolated, "joint": joint, "n_total": n_total}
    rules = {"index": index, "alternative": alternative, "alpha": alpha, "margin": margin}
    references = read_references(given, percent)
    row = compare(files, a, b, metric, **rules, protocol=protocol, percent=percent, **references)
    for line in comparison_tables.comparison(row):
        print(line)
    if output is not None:
        write(output, "comparisons", [row], lambda: comparison_tables.comparison_latex([row]))
        print(f"written to {output}")
