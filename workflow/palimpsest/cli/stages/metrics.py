"""The stage `metrics`: the metrics of one run."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.metrics import METRICS

Reference = Annotated[str | None, typer.Option(metavar="RUN", help="The reference run, METHOD/UNIT.")]


def command(
    study: StudyFolder,
    code: CodeFile,
    run: Annotated[str, typer.Option(help="The run, METHOD/UNIT.")],
    schedule: Annotated[
        str, typer.Option(help="What the run trains on: sequential, cumulative, joint, isolated or untrained.")
    ],
    random_init: Reference = None,
    isolated: Reference = None,
    joint: Reference = None,
    protocols: Annotated[str, typer.Option(help="The study's protocols (JSON), for a run without any rows.")] = "[]",
) -> None:
    """Compute every metric of a run from its matrix and those of its reference runs."""
    from palimpsest.metrics._run import write_metrics

    given = {"random_init": random_init, "isolated": isolated, "joint": joint}
    references = {role: reference for role, reference in given.items() if reference is not None}
    parameters = {"run": run, "schedule": schedule, "references": references, "protocols": json.loads(protocols)}
    job = begin(study, "metrics", code, METRICS.modules(), parameters=parameters)
    write_metrics(job, run, schedule, references, parameters["protocols"])
