"""How every stage begins: the program is compared with the recorded one, then a job is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from palimpsest.core import code
from palimpsest.core.artifact import Job

StudyFolder = Annotated[Path, typer.Option("--study", help="The study's results folder, results/STUDY.")]
CodeFile = Annotated[
    str, typer.Option("--code", help="The recorded program, below the study's folder: plan/code/….json.")
]

RawFolder = Annotated[
    Path, typer.Option("--raw", envvar="PALIMPSEST_DATA", help="Folder of raw files, those of a data set in NAME/.")
]


def begin(
    study: Path,
    rule: str,
    code_file: str,
    modules: Iterable[str] = (),
    spec_hash: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Job:
    """Open a job of a stage, after its program on disk was found to be the recorded one.

    Args:
        study: the folder `results/STUDY`.
        rule: the stage; its entry point is `palimpsest.cli.stages.RULE`.
        code_file: the recorded program, relative to `study`.
        modules: what the stage finds by name and runs too (method, benchmark, model).
        spec_hash: hash of the run's specification, where the job belongs to one run.
        parameters: plain content for the lineage.

    Raises:
        CodeChangedError: the program was edited since the workflow run began.
        ArtifactError: the recorded program is missing or was changed.
    """
    job = Job(study, rule, code="", environment="", spec_hash=spec_hash, parameters=parameters or {})
    recorded = job.read_json(code_file)
    code.require(recorded, f"palimpsest.cli.stages.{rule}", modules)
    job.code, job.environment = recorded["code"], recorded["environment"]
    return job
