"""How the workflow opens a study: the file, its lock, and the one process that may work on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from palimpsest.core.artifact import record_path, recorded_paths, remove_artifact
from palimpsest.core.errors import ArtifactError, StudyError
from palimpsest.core.exclusive import hold
from palimpsest.plan.grid import Grid
from palimpsest.plan.lock import open_lock
from palimpsest.plan.probing import Recording
from palimpsest.plan.study import Study, read_study


def study_file(configfiles: Sequence[str | Path], overrides: Mapping[str, object], default: Path) -> Path:
    """The study that was named by `--configfile`, or the default one; relative where it lies below this folder.

    The workflow compares paths between runs: relative ones stay the same when the whole folder is moved or cloned.

    Raises:
        StudyError: more than one is named, or fields are overridden by `--config`; a study is one file, which its lock
            covers whole.
    """
    if overrides:
        raise StudyError(
            "a field of the study is overridden on the command line",
            where="--config",
            expected="nothing: what a study does stands in its file, and its lock covers it",
            got=", ".join(f"{key}={value}" for key, value in overrides.items()),
            next="write it into the study file and make a new lock",
        )
    if len(configfiles) > 1:
        raise StudyError(
            "more than one study file is named",
            where="--configfile",
            expected="one study; its lock covers it whole, so nothing is merged over it",
            got=", ".join(map(str, configfiles)),
            next="name one file; run several studies one after the other",
        )
    path = Path(configfiles[0]) if configfiles else default
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def open_study(path: Path) -> tuple[Study, Grid]:
    """A validated study and the grid of its locked plan.

    Raises:
        StudyError, LockError: the study is invalid, or does not agree with its lock.
    """
    study, _ = read_study(path)
    return study, open_lock(study, path)


def one_workflow_at_a_time(folder: Path) -> IO[str]:
    """Hold the study's results for this process; keep the returned file.

    Raises:
        ArtifactError: another workflow works on them.
    """

    def refuse() -> None:
        raise ArtifactError(
            "another workflow is working on this study",
            where=str(folder),
            expected="one at a time",
            got=f"the lock {folder / '.lock'} is held",
            next="wait for it, or stop it; envs/run palimpsest status shows how far it is",
        )

    return hold(folder / ".lock", refuse)


def forget_what_is_stale(folder: Path, lock: Path, grid: Grid, programs: Mapping[str, str]) -> None:
    """Remove the declared file of whatever was made by another plan or program, or has lost what belongs to it.

    Snakemake makes what is missing, and what follows from it. By itself it would notice a change only by its notes on
    earlier runs, which a clone or a restored folder lacks, or by times of change, which a copy may set back. Nothing is
    lost: a finished stage that fits is accepted again. Only who holds the study may call this.
    """
    codes = folder / "plan" / "code"
    for path in codes.rglob("*.json"):
        program = programs.get(str(path.relative_to(codes).with_suffix("")))
        if program is None or path.read_bytes() != program.encode():
            remove_artifact(folder, path.relative_to(folder))
    if _bytes(folder / "plan" / "lock.json") != lock.read_bytes():
        remove_artifact(folder, "plan/lock.json")
    for run in grid.runs.values():
        for number in run.stage_numbers:
            path = folder / "runs" / run.run / f"stage-{number}.json"
            if path.is_file() and not _is_whole(folder, path, run.spec_hash, grid.recording(run.method)):
                remove_artifact(folder, path.relative_to(folder))
    page = folder / "report" / "index.html"
    if not all((folder / path).is_file() for path in recorded_paths(folder, "report")):
        remove_artifact(folder, page.relative_to(folder))


def _is_whole(folder: Path, path: Path, spec_hash: str, recording: Recording) -> bool:
    """Whether a stage's record is of the planned run, records what is planned, and has all its files with records."""
    try:
        record = json.loads(path.read_bytes())
        files = [path.relative_to(folder), *(path.relative_to(folder).with_name(name) for name in record["files"])]
        planned = (record["lineage"]["spec"], record["recording"]) == (spec_hash, recording)
        return planned and all((folder / file).is_file() and record_path(folder, file).is_file() for file in files)
    except (ValueError, KeyError, TypeError):
        return False


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
