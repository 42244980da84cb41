"""`palimpsest stage collect`: steps, outcome and telemetry of one run from its stages. No torch."""

from __future__ import annotations

from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.run_spec import RunId


def command(
    study: StudyFolder,
    code: CodeFile,
    run: RunId,
    stages: Annotated[str, typer.Option(help="The run's stages, such as 1,2,3.")],
) -> None:
    """Write runs/METHOD/UNIT/steps.parquet and outcome.parquet, and telemetry/METHOD/UNIT.parquet."""
    job = begin(study, "collect", code, parameters={"run": run})
    from palimpsest.training.collect import collect_run

    collect_run(job, run, [int(stage) for stage in stages.split(",")])
