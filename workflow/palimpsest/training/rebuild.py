"""A stage made again, beside the study, and moved into it only if it is the recorded one to the last bit."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from palimpsest.core.artifact import RECORDS, Job, record_path
from palimpsest.core.attempts import Notes
from palimpsest.core.errors import ArtifactError
from palimpsest.data.samples import FILES
from palimpsest.plan.probing import Recording
from palimpsest.training.machine import Kind
from palimpsest.training.stages import Record, checkpoint_of, record_of, train_stages


def rebuild_stage(
    job: Job, run: str, spec: dict[str, Any], number: int, machine: Kind, say: Callable[[str], None]
) -> dict[str, str]:
    """Train one stage again from its parent's checkpoint and put its files in place.

    Args:
        job, run, spec, number, machine, say: as of `stage_made_again`.

    Returns:
        SHA-256 of each file, by its path in the study; all equal to the recorded ones.

    Raises:
        ArtifactError: the run has no such stage or no record of it, or what was made is not what was recorded.
    """
    folder = f"runs/{run}"
    record = job.study / record_of(folder, number)
    if number not in [stage["stage"] for stage in spec["stages"]] or not record.is_file():
        raise _error(
            job, record, "a stage of the run that has a record", "none", "run snakemake: it trains what is missing"
        )
    recorded = json.loads(record.read_bytes())
    with stage_made_again(job, run, spec, number, recorded["recording"], machine, say, within=job.study) as (
        scratch,
        made,
    ):
        if made["files"] != recorded["files"]:
            raise _error(
                job,
                record,
                f"files {recorded['files']}",
                f"files {made['files']}",
                "find out what changed: nothing was replaced",
            )
        for name in recorded["files"]:
            for path in (Path(folder) / name, RECORDS / f"{folder}/{name}.json"):
                (scratch.study / path).replace(job.study / path)
    return {f"{folder}/{name}": digest for name, digest in recorded["files"].items()}


@contextmanager
def stage_made_again(
    job: Job,
    run: str,
    spec: dict[str, Any],
    number: int,
    recording: Recording,
    machine: Kind,
    say: Callable[[str], None],
    within: Path | None = None,
) -> Iterator[tuple[Job, Record]]:
    """Train one stage again from its parent's checkpoint, in a folder of its own that is there as long as the context.

    Args:
        job, run, spec, machine, say: as of `training.stages.train_stages`; the study is only read.
        number: the stage.
        recording: what is recorded beside the steps.
        within: where that folder is made; among the system's temporary ones if left out.

    Yields:
        A job in that folder, and the record of the stage that was made there.
    """
    (stage,) = (stage for stage in spec["stages"] if stage["stage"] == number)
    with tempfile.TemporaryDirectory(dir=within, prefix=".rebuild-") as place:
        scratch = replace(job, study=Path(place), parents=dict(job.parents))
        _prepare(job.study, scratch.study, f"runs/{run}", stage["parent"])
        train_stages(
            scratch, run, spec, [number], recording, machine, lambda stage: nullcontext(Notes()), lambda: "go", say
        )
        yield scratch, json.loads((scratch.study / record_of(f"runs/{run}", number)).read_bytes())


def _prepare(study: Path, scratch: Path, folder: str, parent: int | None) -> None:
    """What the stage reads, in a folder of its own: data and parent, with their records."""
    (scratch / "data").symlink_to((study / "data").resolve())
    paths = list(FILES)
    if parent is not None:
        paths += [record_of(folder, parent), checkpoint_of(folder, parent)]
        (scratch / folder).mkdir(parents=True)
    for path in paths:
        record = record_path(scratch, path)
        record.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(record_path(study, path), record)
        if not path.startswith("data/"):
            (scratch / path).symlink_to((study / path).resolve())


def _error(job: Job, where: Path, expected: str, got: str, next: str) -> ArtifactError:
    return ArtifactError("a stage cannot be made again", where=str(where), expected=expected, got=got, next=next)
