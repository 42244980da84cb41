"""`palimpsest compare`: the paired comparison of two methods on matrices from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    file: Annotated[
        Path, typer.Argument(help="CSV, JSON or Parquet in long form: method, unit, stage, task, value; seed, order.")
    ],
    a: Annotated[str, typer.Option("--a", help="The first method.")],
    b: Annotated[str, typer.Option("--b", help="The method it is compared with: differences are A − B.")],
    metric: Annotated[str, typer.Option(help="What is compared.")] = "average_accuracy",
    index: Annotated[int | None, typer.Option(help="Stage k, for a metric with one value per stage.")] = None,
    alternative: Annotated[str, typer.Option(help="Of A − B: two-sided, greater or less.")] = "two-sided",
    alpha: Annotated[float, typer.Option(help="Error rate of the test.")] = 0.05,
    margin: Annotated[float | None, typer.Option(help="Equivalence margin δ, a fraction.")] = None,
    protocol: Annotated[
        str, typer.Option(help="class_incremental, task_incremental or domain_incremental.")
    ] = "unknown",
    percent: Annotated[bool, typer.Option("--percent", help="Values are percent instead of fractions.")] = False,
) -> None:
    """Compare two methods over the units that they share, by the test that a study would use."""
    from palimpsest.cli.compare_files import Question, compare_file

    question = Question(a, b, metric, index, protocol, alternative, alpha, margin)
    for line in compare_file(file, question, percent):
        print(line)
