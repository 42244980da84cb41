"""`palimpsest stage train`: bring stages of one run to their records."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.run_spec import RunId, SpecText, read_spec


def command(
    study: StudyFolder,
    code: CodeFile,
    run: RunId,
    spec: SpecText,
    stages: Annotated[str, typer.Option(help="Stages to train, such as 1,2,3.")],
) -> None:
    """Train stages of a run; those that stand already are accepted."""
    from palimpsest.cli.attempts import Attempts
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.core.hashing import hash_json
    from palimpsest.training.stages import train_stages

    told, modules = read_spec(spec)
    job = begin(study, "train", code, modules, spec_hash=hash_json(told), parameters={"run": run})

    pin_numerics(told["numerics"]["threads"])

    def say(line: str) -> None:
        print(f"{run}: {line}", file=sys.stderr, flush=True)

    train_stages(job, run, told, [int(stage) for stage in stages.split(",")], Attempts(study, run), say)
