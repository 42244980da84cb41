"""A run of a study that a user names: its specification from the locked plan, and a job for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palimpsest.cli.begin import begin
from palimpsest.core.errors import ArtifactError
from palimpsest.core.exclusive import is_held
from palimpsest.plan.grid import Grid
from palimpsest.plan.lock import read_lock
from palimpsest.plan.probing import Recording

RunArgument = Annotated[str, typer.Argument(help="The run, METHOD/UNIT.")]
StudyOption = Annotated[str, typer.Option("--study", help="Name of the study.")]
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of all results.")]


def open_run(results: Path, study: str, run: str) -> tuple[Any, dict[str, Any], Recording]:
    """A job of the rule train for a run, its specification, and what it records.

    Raises:
        ArtifactError: there is no such study or run, or a workflow works on it.
        CodeChangedError: the program is not the one that trained the run.
    """
    folder = results / study
    lock = folder / "plan" / "lock.json"
    if not lock.is_file():
        raise ArtifactError(
            "there is no such study",
            where=str(folder),
            expected="a study that has begun: plan/lock.json in its folder",
            got="no such file",
            next="name the study by --study and its folder by --results",
        )
    grid = Grid(read_lock(lock))
    if run not in grid.runs:
        raise ArtifactError(
            "there is no such run",
            where=str(folder),
            expected="METHOD/UNIT, one of the plan, such as " + next(iter(grid.runs)),
            got=run,
            next=f"palimpsest status {study} lists the methods",
        )
    if is_held(folder / ".lock"):
        raise ArtifactError(
            "a workflow is working on this study",
            where=str(folder),
            expected="nobody else at work",
            got=f"the lock {folder / '.lock'} is held",
            next="wait for it, or stop it",
        )
    found = grid.runs[run]
    job = begin(
        folder, "train", f"plan/code/{found.method}.json", grid.modules(found.method), found.spec_hash, {"run": run}
    )
    return job, found.spec, grid.recording(found.method)
