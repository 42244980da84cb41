"""What the stages of a run recorded, put together. No torch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from palimpsest.core.artifact import Job
from palimpsest.core.attempts import read_attempts
from palimpsest.core.tables import TABLES
from palimpsest.training.stages import read_record


def collect_run(job: Job, run: str, numbers: list[int]) -> None:
    """Write `steps.parquet` and `outcome.parquet` of a run from its stages, and its attempts as telemetry."""
    folder = f"runs/{run}"
    records = [read_record(job, folder, number) for number in numbers]
    names = [name for record in records for name in record["files"] if name.endswith(".steps.parquet")]
    job.write_table(
        f"{folder}/steps.parquet",
        "steps",
        pa.concat_tables([job.read_table(f"{folder}/{name}", "steps") for name in names]),
    )
    # The stages of a reference may be independent of one another: one that ended counts, wherever it stands.
    outcome = next((record for record in records if record["status"] == "ended"), records[-1])
    job.write_table(
        f"{folder}/outcome.parquet",
        "outcome",
        {
            "status": [outcome["status"]],
            "stage": [outcome["ended_in"] or outcome["stage"]],
            "step": [outcome["step"]],
            "reason": [outcome["reason"]],
        },
    )
    job.write_telemetry(f"telemetry/{run}.parquet", "telemetry", _attempts(job, run))


def _attempts(job: Job, run: str) -> dict[str, list[Any]]:
    """Columns of the table `telemetry` from the log of attempts; one that never ended was killed."""
    attempts = read_attempts(job.study, run)
    stages = [attempt["stage"] for attempt in attempts]
    numbers = [stages[: index + 1].count(stage) for index, stage in enumerate(stages)]
    rows = [{**a, "run": run, "attempt": number} for a, number in zip(attempts, numbers, strict=True)]
    return {column: [row[column] for row in rows] for column in TABLES["telemetry"].schema.names}
