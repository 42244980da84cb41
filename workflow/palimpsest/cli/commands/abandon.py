"""`palimpsest abandon`: complete a study without a run that cannot be finished."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.one_run import ResultsOption, RunArgument, StudyOption


def command(
    run: RunArgument,
    study: StudyOption,
    reason: Annotated[str, typer.Option(help="Why the run is given up; it stands in the tables and the report.")],
    results: ResultsOption = Path("results"),
) -> None:
    """Record the outcome `infrastructure` for the missing stages of a run; it stays in every table as failed."""
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.cli.one_run import open_run
    from palimpsest.training.stages import abandon_stages

    job, spec, recording = open_run(results, study, run)
    machine = pin_numerics(spec["numerics"]["threads"])
    given_up = abandon_stages(job, run, spec, recording, machine, reason, lambda line: print(f"{run}: {line}"))
    print(
        f"{len(given_up)} stages given up; envs/run snakemake goes on" if given_up else "nothing is missing of this run"
    )
