"""`palimpsest compare-studies`: how methods rank over several studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.sources import Percent


def command(
    studies: Annotated[
        list[str],
        typer.Argument(
            help="Studies of the same methods: names, folders of results, or files in long form (method, unit, stage, "
            "task, value), one for each study."
        ),
    ],
    results: Annotated[Path, typer.Option(help="Folder of all results, for names.")] = Path("results"),
    metric: Annotated[str, typer.Option(help="A metric with one value per run.")] = "average_accuracy",
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    protocol: Annotated[
        str | None, typer.Option(help="Under which predictions were scored; each study's own if left out.")
    ] = None,
    percent: Percent = False,
    output: Annotated[Path | None, typer.Option(help="Write it to a file too: .csv, .json, .parquet, .tex.")] = None,
) -> None:
    """Results of each study, mean ranks over them, and Friedman's test; accuracies are never pooled."""
    from palimpsest.cli import comparison_tables
    from palimpsest.cli.output import require_kind, write
    from palimpsest.statistics import compare_studies

    require_kind(output)
    places = [Path(study) if Path(study).exists() else results / study for study in dict.fromkeys(studies)]
    named = {place.resolve().name if place.is_dir() else place.stem: place for place in places}
    rows = compare_studies(named, metric, alpha=alpha, protocol=protocol, percent=percent)
    for line in comparison_tables.ranks(rows):
        print(line)
    if output is not None:
        write(output, "ranks", rows, lambda: comparison_tables.ranks_latex(rows))
        print(f"written to {output}")
