"""`palimpsest stage train`: bring stages of some runs of one method to their records."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.runs import Method, Recorded, Shared, Units, each_run, modules_of, threads_of


def command(
    study: StudyFolder,
    code: CodeFile,
    method: Method,
    shared: Shared,
    units: Units,
    stages: Annotated[str, typer.Option(help="Stages to train, such as 1,2,3.")],
    recording: Recorded,
    checkpoint_seconds: Annotated[float, typer.Option(help="Least time between two resume files.")] = 60.0,
) -> None:
    """Train stages of runs; those that stand already are accepted, and a killed one goes on where it was."""
    from palimpsest.cli.attempts import Attempts
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.cli.pace import Pace
    from palimpsest.core.errors import StoppedError
    from palimpsest.training.stages import train_stages

    pace = Pace(checkpoint_seconds)
    job = begin(study, "train", code, modules_of(shared))
    machine = pin_numerics(threads_of(shared))
    numbers = [int(stage) for stage in stages.split(",")]
    for run_job, run, spec in each_run(job, method, shared, units):

        def say(line: str, run: str = run) -> None:
            print(f"{run}: {line}", file=sys.stderr, flush=True)

        try:
            train_stages(run_job, run, spec, numbers, json.loads(recording), machine, Attempts(study, run), pace, say)
        except StoppedError as error:
            say(str(error))
            raise typer.Exit(pace.exit_code) from None
