"""How the workflow opens a study: the file, its lock, and the one process that may work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from palimpsest.core.errors import ArtifactError, StudyError
from palimpsest.core.exclusive import hold
from palimpsest.plan.grid import Grid
from palimpsest.plan.lock import open_lock
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
            next="wait for it, or stop it; palimpsest status shows how far it is",
        )

    return hold(folder / ".lock", refuse)


def forget_other_programs(folder: Path, programs: Mapping[str, str]) -> None:
    """Remove each recorded program that is not the one on disk now, so that it and what it made are made again.

    Snakemake notices the change by its notes on earlier runs; a clone or a restored folder has none.
    """
    for name, program in programs.items():
        path = folder / "plan" / "code" / f"{name}.json"
        if path.is_file() and path.read_bytes() != program.encode():
            path.unlink()
