"""The stages of one run, one after the other: accepted where they stand, trained where they do not.

Snakemake deletes a job's declared outputs before it runs the job again. So of a stage only the record `stage-K.json` is
declared; checkpoint and tables lie beside it, named in the record by hash, and a copy of the record is kept under
`.accepted/`. A job that is started again takes over every stage whose copy still fits: same specification, program,
environment, data and parent, and every file as it was; one of another kind of machine is refused, or accepted and
marked, as the plan says. Within a stage it goes on from the resume
file (`training.resume`).

Nothing here imports torch: a run that has ended, or is already there, costs no such start.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from palimpsest.core.artifact import Job, record_path, write_atomically
from palimpsest.core.attempts import Notes
from palimpsest.core.errors import ArtifactError
from palimpsest.core.exclusive import hold
from palimpsest.core.hashing import canonical_json, hash_file, hash_json
from palimpsest.data.samples import FILES
from palimpsest.plan.probing import RECORDED, Recording
from palimpsest.training.machine import Kind

Record = dict[str, Any]
Observe = Callable[[int], AbstractContextManager[Notes]]
"""Called with a stage that is about to be trained; its context notes when the attempt began and how it ended, and gives
what training tells of it meanwhile."""


def train_stages(
    job: Job,
    run: str,
    spec: dict[str, Any],
    numbers: list[int],
    recording: Recording,
    machine: Kind,
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
        recording: what is recorded beside the steps; a stage that recorded something else is trained again.
        machine: the kind of this machine.
        observe: see `Observe`.
        ask: asked after every step, see `training.stage.Ask`.
        say: prints one line of progress.
    """
    folder = f"runs/{run}"
    # A trainer that outlived its workflow finishes first, and its stages are accepted.
    with hold(job.study / folder / ".lock", lambda: say("waiting for another process that trains this run")):
        for path in FILES:
            job.locate(path)
        for stage in (stage for stage in spec["stages"] if stage["stage"] in numbers):
            _bring(job, run, spec, stage, recording, machine, observe, ask, say)


def abandon_stages(
    job: Job,
    run: str,
    spec: dict[str, Any],
    recording: Recording,
    machine: Kind,
    reason: str,
    say: Callable[[str], None],
) -> list[int]:
    """Record that a run's missing stages will not come, so that the study can be completed without it.

    The first stage without a record, and all after it, are recorded as `ended` with the reason `infrastructure: …`; the
    run stays in every table as failed.

    Args:
        job: of the rule train; its specification is the run's.
        run, spec, recording, machine, say: as of `train_stages`.
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
        for path in FILES:
            job.locate(path)
        missing = [s for s in spec["stages"] if not (job.study / record_of(folder, s["stage"])).is_file()]
        for stage in missing:
            stage_job = job.fork(stage=stage["stage"])
            before = _parent(stage_job, folder, stage["parent"])
            first = missing[0]["stage"] if before is None or before["status"] == "complete" else before["ended_in"]
            outcome = {
                "status": "ended",
                "ended_in": first,
                "step": before["step"] if before else 0,
                "reason": f"infrastructure: {reason}",
                "counted": {},
            }
            _write_record(stage_job, folder, stage["stage"], machine, recording, outcome, files={})
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
    recording: Recording,
    machine: Kind,
    observe: Observe,
    ask: Callable[[], str],
    say: Callable[[str], None],
) -> None:
    folder, number = f"runs/{run}", stage["stage"]
    stage_job = job.fork(stage=number)
    before = _parent(stage_job, folder, stage["parent"])
    if before is not None and before["status"] == "ended":
        outcome = {key: before[key] for key in ("status", "ended_in", "step", "reason")}
        _write_record(stage_job, folder, number, machine, recording, outcome | {"counted": {}}, files={})
        say(f"stage {number}: the run ended in stage {before['ended_in']} ({before['reason']})")
        return
    expected = _frame(stage_job, number, machine, recording)
    earlier = _kept(stage_job, folder, number, expected)
    for found in (before, earlier):
        if found is not None and found["counted"] and found["machine"] != machine:
            _other_machine(stage_job, folder, found, machine, spec["numerics"]["other_machines"])
            say(f"stage {found['stage']} was trained on another kind of machine, which the plan allows")
    if earlier is not None and earlier["recording"] == recording and _is_whole(stage_job, folder, earlier):
        stage_job.write_json(record_of(folder, number), earlier, kind="stage")
        _remove_resume_files(job.study / folder, number)
        say(f"stage {number}: accepted as it stands")
        return
    with observe(number) as notes:
        from palimpsest.training.stage import train_one_stage

        key = hash_json(expected)
        comparable = earlier if earlier and earlier["machine"] == machine else None
        with _earlier_kept(stage_job, folder, comparable) as compare:
            outcome, files = train_one_stage(stage_job, run, spec, stage, recording, key, ask, say, notes)
            compare(files)
        _write_record(stage_job, folder, number, machine, recording, outcome, files)
        _remove_resume_files(job.study / folder, number)


@contextmanager
def _earlier_kept(job: Job, folder: str, earlier: Record | None) -> Iterator[Callable[[dict[str, str]], None]]:
    """Keeps what a stage made before, as far as it is whole, until it is known that training it again makes the same.

    Gives what compares new files with the earlier ones. A difference passes through as an error, and the earlier files
    stand in their places again; so they do after a kill, once the stage was tried again.
    """
    if earlier is None:
        yield lambda made: None
        return
    aside = job.study / folder / ".accepted" / f"stage-{earlier['stage']}.earlier"
    whole = [name for name, digest in earlier["files"].items() if _is_file(job.study / folder / name, digest)]
    pairs = {aside / name: job.study / folder / name for name in whole}
    pairs |= {aside / f"{name}.json": record_path(job.study, f"{folder}/{name}") for name in whole}
    aside.mkdir(exist_ok=True)
    for kept, place in pairs.items():
        if place.exists() and not kept.exists():
            os.link(place, kept)
    try:
        yield lambda made: require_same_run(job.study / record_of(folder, earlier["stage"]), earlier["files"], made)
    except ArtifactError:
        for kept, place in pairs.items():
            if kept.exists():
                kept.replace(place)
        aside.rmdir()
        raise
    shutil.rmtree(aside)


def _remove_resume_files(folder: Path, number: int) -> None:
    """Remove what is left of a stage that is there, temporary files of killed writers included."""
    place = folder / ".resume"
    for path in [*place.glob(f"stage-{number}.*"), *place.glob(f".stage-{number}.*")]:
        path.unlink()
    if place.is_dir() and not any(place.iterdir()):
        place.rmdir()


def _parent(job: Job, folder: str, parent: int | None) -> Record | None:
    """The record of the stage before, if there is one.

    What becomes a parent of the job is the checkpoint, or the record where the run ended: the record of a complete
    stage also tells of probes, and no byte of a run may depend on them.
    """
    if parent is None:
        return None
    before = read_record(job.fork(), folder, parent)
    if before["status"] == "complete":
        job.locate(checkpoint_of(folder, parent))
        return before
    return read_record(job, folder, parent)


def require_same_run(where: Path, recorded: dict[str, str], made: dict[str, str]) -> None:
    """Compare what training made with what it made before: all files but those that `plan.probing` names.

    Raises:
        ArtifactError: a file has another hash, or only one of the two has it.
    """
    first, second = (
        {name: digest for name, digest in files.items() if name.split(".")[1] not in RECORDED}
        for files in (recorded, made)
    )
    if first != second:
        raise ArtifactError(
            "a stage that was trained again did not come to the bytes to which it came before",
            where=str(where),
            expected=f"files {first}",
            got=f"files {second}",
            next="find out what changed (a hook that draws from a global generator, a `predict` that changes the model "
            "or its state); then remove the run's folder to train it anew",
        )


def _other_machine(job: Job, folder: str, found: Record, here: Kind, allowed: str) -> None:
    """Refuse to go on from a stage that another kind of machine trained, unless the plan wants it marked."""
    if allowed == "refuse":
        raise ArtifactError(
            "a stage was trained on another kind of machine",
            where=str(job.study / record_of(folder, found["stage"])),
            expected=f"the kind of this machine, {here}",
            got=f"{found['machine']}",
            next="go on where the run began, or remove its folder to train it here from the start; a plan with "
            "numerics.other_machines: mark goes on, and the report says so",
        )


def _frame(job: Job, number: int, machine: Kind, recording: Recording) -> Record:
    """What of a record is known before the stage is trained."""
    return {"stage": number, "lineage": job.lineage(), "machine": machine, "recording": recording}


def _write_record(
    job: Job,
    folder: str,
    number: int,
    machine: Kind,
    recording: Recording,
    outcome: Record,
    files: dict[str, str],
) -> None:
    record = {**_frame(job, number, machine, recording), **outcome, "files": files}
    write_atomically(job.study / folder / ".accepted" / f"stage-{number}.json", canonical_json(record))
    job.write_json(record_of(folder, number), record, kind="stage")


def _kept(job: Job, folder: str, number: int, expected: Record) -> Record | None:
    """The copy of a stage's record, if it is of this program, data and parent, whatever it recorded beside its steps
    and on whatever kind of machine.

    A stage that was given up recorded nothing and never will: it is as if that had been asked for.
    """
    copy = job.study / folder / ".accepted" / f"stage-{number}.json"
    if not copy.is_file():
        return None
    try:
        record = json.loads(copy.read_bytes())
    except ValueError:
        return None
    if not isinstance(record, dict) or record.keys() < {*expected, "files"}:
        return None
    if any(record[key] != value for key, value in expected.items() if key not in ("recording", "machine")):
        return None
    return record if record["files"] else record | {"recording": expected["recording"]}


def _is_whole(job: Job, folder: str, record: Record) -> bool:
    """Whether all files that a record names are as they were."""
    return all(_is_file(job.study / folder / name, digest) for name, digest in record["files"].items())


def _is_file(place: Path, digest: str) -> bool:
    return place.is_file() and hash_file(place) == digest
