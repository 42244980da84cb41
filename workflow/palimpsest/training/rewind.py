"""A finer look at a stage after the fact: trained again to the same bytes, and probed on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palimpsest.core.artifact import Job
from palimpsest.core.errors import ArtifactError
from palimpsest.training.machine import Kind
from palimpsest.training.rebuild import stage_made_again
from palimpsest.training.stages import checkpoint_of, read_record, record_of, require_same_run


def rewind_stage(
    job: Job,
    writer: Job,
    run: str,
    spec: dict[str, Any],
    number: int,
    probes: dict[str, Any],
    machine: Kind,
    say: Callable[[str], None],
) -> str:
    """Train a stage again, probed as asked, and keep the probes if it came to the recorded bytes.

    They are written to `rewinds/METHOD/UNIT/stage-K.every-N.TASKS.SPLIT.probes.parquet`. The footer holds the proof:
    for the stage's checkpoint and its steps the recorded SHA-256 and the one that was arrived at.

    Args:
        job: of the rule train; its specification is the run's.
        writer: the job of the rule rewind, which writes the probes.
        run, spec, number, machine, say: as of `training.rebuild.stage_made_again`.
        probes: the section of a study that says when and on what; its schedule is `every`.

    Returns:
        The path of the probes, relative to the study.

    Raises:
        ArtifactError: the stage did not complete, what it starts from was changed, or it did not come to the recorded
            bytes; nothing is written.
    """
    folder = f"runs/{run}"
    checkpoint = checkpoint_of("", number).strip("/")
    recorded = read_record(writer, folder, number)
    if checkpoint not in recorded["files"]:
        raise ArtifactError(
            "there is no checkpoint to arrive at",
            where=str(job.study / record_of(folder, number)),
            expected="a stage that completed",
            got="one that ended",
            next="rewind a stage before it",
        )
    recording = {"probes": probes, "prequential": False}
    with stage_made_again(job, run, spec, number, recording, machine, say, within=job.study) as (scratch, made):
        require_same_run(job.study / record_of(folder, number), recorded["files"], made["files"])
        rows = scratch.read_table(f"{folder}/stage-{number}.probes.parquet", "probes")
    writer.parents.update(made["lineage"]["parents"])
    names = (checkpoint, f"stage-{number}.steps.parquet")
    proof = {name: {"recorded": recorded["files"][name], "arrived_at": made["files"][name]} for name in names}
    kind = f"every-{probes['every']}.{probes['tasks']}.{probes['split']}"
    path = f"rewinds/{run}/stage-{number}.{kind}.probes.parquet"
    writer.write_table(path, "probes", rows, proof=proof)
    return path
