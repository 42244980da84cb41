"""`palimpsest stage train`: bring stages of some runs of one method to their records."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.runs import Method, Shared, Units, each_run, modules_of, threads_of


def command(
    study: StudyFolder,
    code: CodeFile,
    method: Method,
    shared: Shared,
    units: Units,
    stages: Annotated[str, typer.Option(help="Stages to train, such as 1,2,3.")],
) -> None:
    """Train stages of runs; those that stand already are accepted."""
    from palimpsest.cli.attempts import Attempts
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.training.stages import train_stages

    job = begin(study, "train", code, modules_of(shared))
    pin_numerics(threads_of(shared))
    for run_job, run, spec in each_run(job, method, shared, units):

        def say(line: str, run: str = run) -> None:
            print(f"{run}: {line}", file=sys.stderr, flush=True)

        train_stages(run_job, run, spec, [int(stage) for stage in stages.split(",")], Attempts(study, run), say)
