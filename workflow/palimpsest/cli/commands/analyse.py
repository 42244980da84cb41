"""`palimpsest analyse`: metrics, statistics and report of a study once more, by the installed program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    study: Annotated[Path, typer.Argument(help="The results of a study, results/STUDY.")],
    into: Annotated[Path, typer.Option(help="Folder of the new results; empty, or not there.")],
) -> None:
    """Compute metrics and all that follows from them again, without training; the study stays as it is."""
    from palimpsest.cli.analysing import analyse_again, other_tables
    from palimpsest.cli.progress import bars

    with bars() as track:
        root = analyse_again(study, into, track)
    others = other_tables(study, into)
    print(f"report: {into / 'report/index.html'}; root {root}")
    if not others:
        print("every table of metrics, aggregates and statistics has the rows that it had")
    for path in others:
        print(f"other rows than before: {path}")
