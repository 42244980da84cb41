"""`palimpsest rebuild`: make a lost or damaged stage again, and prove that it is the recorded one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.one_run import ResultsOption, RunArgument, StudyOption


def command(
    run: RunArgument,
    stage: Annotated[int, typer.Option(help="The stage whose checkpoint and tables are made again.")],
    study: StudyOption,
    results: ResultsOption = Path("results"),
) -> None:
    """Train a stage again from the one before it; its files take their place only if their hashes are the recorded."""
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.cli.one_run import open_run

    job, spec, _ = open_run(results, study, run)
    machine = pin_numerics(spec["numerics"]["threads"])
    from palimpsest.training.rebuild import rebuild_stage

    for path, digest in rebuild_stage(job, run, spec, stage, machine, lambda line: print(f"{run}: {line}")).items():
        print(f"{path}: sha256 {digest}, as recorded")
