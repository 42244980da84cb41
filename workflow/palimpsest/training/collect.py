"""What the stages of a run recorded, put together. No torch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from palimpsest.core.artifact import Job, remove_artifact
from palimpsest.core.attempts import read_attempts
from palimpsest.core.tables import TABLES
from palimpsest.plan.outcome import outcome_of
from palimpsest.plan.probing import RECORDED, Recording
from palimpsest.training.stages import Record, read_record


def collect_run(job: Job, run: str, numbers: list[int], recording: Recording) -> None:
    """Write `steps.parquet`, `outcome.parquet` and what was recorded of a run, and its attempts as telemetry.

    A table that a run recorded earlier, and that is asked for no more, is removed: nothing may be computed from it.
    """
    folder = f"runs/{run}"
    records = [read_record(job, folder, number) for number in numbers]
    for name in ("steps", *RECORDED):
        if name == "steps" or recording[name]:
            job.write_table(f"{folder}/{name}.parquet", name, _of_stages(job, folder, records, name))
        else:
            remove_artifact(job.study, f"{folder}/{name}.parquet")
    job.write_table(
        f"{folder}/outcome.parquet", "outcome", {name: [value] for name, value in outcome_of(records).items()}
    )
    job.write_telemetry(f"telemetry/{run}.parquet", "telemetry", _attempts(job, run))


def _of_stages(job: Job, folder: str, records: list[Record], name: str) -> pa.Table:
    """Rows of a table of all stages; none of a stage that was not trained."""
    files = [file for record in records for file in record["files"] if file.endswith(f".{name}.parquet")]
    tables = [job.read_table(f"{folder}/{file}", name) for file in files]
    return pa.concat_tables([TABLES[name].schema.empty_table(), *tables])


def _attempts(job: Job, run: str) -> dict[str, list[Any]]:
    """Columns of the table `telemetry` from the log of attempts; one that never ended was killed."""
    attempts = read_attempts(job.study, run)
    stages = [attempt["stage"] for attempt in attempts]
    numbers = [stages[: index + 1].count(stage) for index, stage in enumerate(stages)]
    rows = [{**a, "run": run, "attempt": number} for a, number in zip(attempts, numbers, strict=True)]
    return {column: [row[column] for row in rows] for column in TABLES["telemetry"].schema.names}
