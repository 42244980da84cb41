"""`palimpsest rewind`: look closer at a stage after the fact, and prove that it is the one that was recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from palimpsest.cli.one_run import ResultsOption, RunArgument, StudyOption


def command(
    run: RunArgument,
    from_stage: Annotated[int, typer.Option(help="The stage that is trained again, from where it began.")],
    every: Annotated[int, typer.Option(min=1, help="Probe at its begin and after every so many mini-batches.")],
    study: StudyOption,
    tasks: Annotated[
        Literal["current", "all"], typer.Option(help="Probe the task that is being learned, or all of them.")
    ] = "all",
    split: Annotated[Literal["validation", "test"], typer.Option(help="Samples that are probed.")] = "test",
    samples: Annotated[
        int | None, typer.Option(min=1, help="At most so many samples of each task; all if left out.")
    ] = None,
    results: ResultsOption = Path("results"),
) -> None:
    """Run the same steps again and evaluate on the way; that is kept only if they come to the recorded bytes."""
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.cli.one_run import open_run

    job, spec, _ = open_run(results, study, run)
    machine = pin_numerics(spec["numerics"]["threads"])
    from palimpsest.training.rewind import rewind_stage

    schedule = {"first_batches": None, "log": False, "every": every, "held_out_every": None}
    probes = {**schedule, "tasks": tasks, "split": split, "samples": samples}
    about = {"run": run, "stage": from_stage, "probes": probes}
    writer = replace(job, rule="rewind", parameters=about, parents=dict(job.parents))
    path = rewind_stage(job, writer, run, spec, from_stage, probes, machine, lambda line: print(f"{run}: {line}"))
    print(f"{job.study / path}: the run came to the recorded bytes of stage {from_stage} again")
