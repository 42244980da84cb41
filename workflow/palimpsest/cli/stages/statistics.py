"""The stage `statistics`: the announced comparisons, and what the order of the tasks changes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.metrics import METRICS


def command(
    study: StudyFolder,
    code: CodeFile,
    analysis: Annotated[str, typer.Option(help="The analysis plan of the lock, as JSON.")],
    marks: Annotated[str, typer.Option(help="What of it is exploratory for good, and why, as JSON.")],
) -> None:
    """Carry out the comparisons of the analysis plan and describe the results by order and position."""
    from palimpsest.statistics.study import write_statistics

    job = begin(study, "statistics", code, METRICS.modules())
    write_statistics(job, json.loads(analysis), json.loads(marks))
