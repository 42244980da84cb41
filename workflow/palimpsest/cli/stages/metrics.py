"""`palimpsest stage metrics`: every metric of some runs of one method."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.metrics import METRICS


def command(
    study: StudyFolder,
    code: CodeFile,
    schedule: Annotated[
        str, typer.Option(help="What the runs train on: sequential, cumulative, joint, isolated or untrained.")
    ],
    runs: Annotated[str, typer.Option(help="The runs, METHOD/UNIT, as a JSON list.")],
    references: Annotated[
        str, typer.Option(help="Reference runs of each run by what they are, as JSON: {RUN: {isolated: RUN}}.")
    ] = "{}",
    protocols: Annotated[str, typer.Option(help="The study's protocols, as a JSON list.")] = "[]",
    boundaries: Annotated[str, typer.Option(help="Whether task boundaries are told to a method, or hidden.")] = "told",
) -> None:
    """Compute every metric of runs from their matrices and those of their reference runs."""
    from palimpsest.metrics._run import Reader, write_metrics

    job, of_each, known = (
        begin(study, "metrics", code, METRICS.modules()),
        json.loads(references),
        json.loads(protocols),
    )
    reader = Reader(job)
    for run in json.loads(runs):
        write_metrics(job, run, schedule, of_each.get(run, {}), known, boundaries, reader)
