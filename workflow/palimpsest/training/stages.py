"""The stages of one run, one after the other: accepted where they stand, trained where they do not.

Snakemake deletes a job's declared outputs before it runs the job again. So of a stage only the record `stage-K.json` is
declared; checkpoint and tables lie beside it, named in the record by hash, and a copy of the record is kept under
`.accepted/`. A job that is started again takes over every stage whose copy still fits: same specification, program,
environment, data and parent, same kind of machine, and every file as it was. Within a stage it goes on from the resume
file (`training.resume`).

Nothing here imports torch: a run that has ended, or is already there, costs no such start.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from palimpsest.core.artifact import Job, write_atomically
from palimpsest.core.errors import ArtifactError
from palimpsest.core.exclusive import hold
from palimpsest.core.hashing import canonical_json, hash_file, hash_json
from palimpsest.data.samples import INPUTS, TABLE
from palimpsest.training.machine import kind_of_machine

Record = dict[str, Any]
Observe = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Called with a stage that is about to be trained; its context notes when the attempt began and how it ended, and gives
a function that notes the step from which the attempt goes on."""


def train_stages(
    job: Job,
    run: str,
    spec: dict[str, Any],
    numbers: list[int],
    observe: Observe,
    ask: Callable[[], str],
    say: Callable[[str], None],
) -> None:
    """Bring stages of a run to their records.

    Args:
        job: of the rule train; its specification is the run's.
        run: `METHOD/UNIT`.
        spec: the run's specification (`plan.grid.complete_spec`).
        numbers: the stages, ascending; the parent of the first is there already, or it has none.
        observe: see `Observe`.
        ask: asked after every step, see `training.stage.Ask`.
        say: prints one line of progress.
    """
    folder = f"runs/{run}"
    # A trainer that outlived its workflow finishes first, and its stages are accepted.
    with hold(job.study / folder / ".lock", lambda: say("waiting for another process that trains this run")):
        for path in (TABLE, INPUTS):
            job.locate(path)
        for stage in (stage for stage in spec["stages"] if stage["stage"] in numbers):
            _bring(job, run, spec, stage, observe, ask, say)


def abandon_stages(job: Job, run: str, spec: dict[str, Any], reason: str, say: Callable[[str], None]) -> list[int]:
    """Record that a run's missing stages will not come, so that the study can be completed without it.

    The first stage without a record, and all after it, are recorded as `ended` with the reason `infrastructure: …`; the
    run stays in every table as failed.

    Args:
        job: of the rule train; its specification is the run's.
        run, spec, say: as of `train_stages`.
        reason: why, in the user's words.

    Returns:
        The stages that were given up; none, if all are there.

    Raises:
        ArtifactError: another process trains the run now.
    """
    folder = f"runs/{run}"

    def refuse() -> None:
        raise ArtifactError(
            "the run is being trained",
            where=str(job.study / folder),
            expected="a run that no process works on",
            got="its lock is held",
            next="stop the workflow first",
        )

    with hold(job.study / folder / ".lock", refuse):
        for path in (TABLE, INPUTS):
            job.locate(path)
        missing = [s for s in spec["stages"] if not (job.study / record_of(folder, s["stage"])).is_file()]
        for stage in missing:
            stage_job = job.fork(stage=stage["stage"])
            parent = stage["parent"]
            before = None if parent is None else read_record(stage_job, folder, parent)
            if before is not None and before["status"] == "complete":
                stage_job.locate(checkpoint_of(folder, parent))
            first = missing[0]["stage"] if before is None or before["status"] == "complete" else before["ended_in"]
            outcome = {
                "status": "ended",
                "ended_in": first,
                "step": before["step"] if before else 0,
                "reason": f"infrastructure: {reason}",
                "counted": {},
            }
            _write_record(stage_job, folder, stage["stage"], spec, outcome, files={})
            say(f"stage {stage['stage']}: given up")
    return [stage["stage"] for stage in missing]


def record_of(folder: str, stage: int) -> str:
    """Path of a stage's record, relative to the study."""
    return f"{folder}/stage-{stage}.json"


def read_record(job: Job, folder: str, stage: int) -> Record:
    """The record of a stage.

    Raises:
        ArtifactError: it is missing, was changed, or is of a run with another specification than the job's.
    """
    record = job.read_json(record_of(folder, stage))
    if record["lineage"]["spec"] != job.spec_hash:
        raise ArtifactError(
            "a stage is not of the run that the plan describes",
            where=str(job.study / record_of(folder, stage)),
            expected=f"specification {job.spec_hash}",
            got=f"specification {record['lineage']['spec']}",
            next=f"remove {job.study / folder} and start snakemake: it trains the run again",
        )
    return record


def checkpoint_of(folder: str, stage: int) -> str:
    """Path of a stage's checkpoint, relative to the study."""
    return f"{folder}/stage-{stage}.safetensors"


def _bring(
    job: Job,
    run: str,
    spec: dict[str, Any],
    stage: dict[str, Any],
    observe: Observe,
    ask: Callable[[], str],
    say: Callable[[str], None],
) -> None:
    folder, number, parent = f"runs/{run}", stage["stage"], stage["parent"]
    stage_job = job.fork(stage=number)
    before = None if parent is None else read_record(stage_job, folder, parent)
    if before is not None and before["status"] == "ended":
        outcome = {key: before[key] for key in ("status", "ended_in", "step", "reason")}
        _write_record(stage_job, folder, number, spec, outcome | {"counted": {}}, files={})
        say(f"stage {number}: the run ended in stage {before['ended_in']} ({before['reason']})")
        return
    if parent is not None:
        _require_same_machine(stage_job, folder, before, spec)
        stage_job.locate(checkpoint_of(folder, parent))
    expected = _frame(stage_job, number, spec)
    accepted = _accepted(stage_job, folder, number, expected)
    if accepted is not None:
        stage_job.write_json(record_of(folder, number), accepted, kind="stage")
        say(f"stage {number}: accepted as it stands")
        return
    with observe(number) as resumed:
        from palimpsest.training.resume import Resume
        from palimpsest.training.stage import train_one_stage

        key = hash_json(expected)
        outcome, files = train_one_stage(stage_job, run, spec, stage, key, ask, say, resumed)
        _write_record(stage_job, folder, number, spec, outcome, files)
        Resume(job.study, run, number, key, say).remove()


def _require_same_machine(job: Job, folder: str, before: Record, spec: dict[str, Any]) -> None:
    here = kind_of_machine(spec["numerics"]["threads"])
    if before["machine"] != here:
        raise ArtifactError(
            "the stage before was trained on another kind of machine",
            where=str(job.study / record_of(folder, before["stage"])),
            expected=f"the kind of this machine, {here}",
            got=f"{before['machine']}",
            next="go on where the run began, or remove its folder to train it here from the start",
        )


def _frame(job: Job, number: int, spec: dict[str, Any]) -> Record:
    """What of a record is known before the stage is trained."""
    return {"stage": number, "lineage": job.lineage(), "machine": kind_of_machine(spec["numerics"]["threads"])}


def _write_record(
    job: Job, folder: str, number: int, spec: dict[str, Any], outcome: Record, files: dict[str, str]
) -> None:
    record = {**_frame(job, number, spec), **outcome, "files": files}
    write_atomically(job.study / folder / ".accepted" / f"stage-{number}.json", canonical_json(record))
    job.write_json(record_of(folder, number), record, kind="stage")


def _accepted(job: Job, folder: str, number: int, expected: Record) -> Record | None:
    """The copy of a stage's record, if it is of this program, data and parent, and all its files are as they were."""
    copy = job.study / folder / ".accepted" / f"stage-{number}.json"
    if not copy.is_file():
        return None
    try:
        record = json.loads(copy.read_bytes())
    except ValueError:
        return None
    if not isinstance(record, dict) or any(record.get(key) != value for key, value in expected.items()):
        return None
    places = {job.study / folder / name: digest for name, digest in record["files"].items()}
    whole = all(place.is_file() and hash_file(place) == digest for place, digest in places.items())
    return record if whole else None
