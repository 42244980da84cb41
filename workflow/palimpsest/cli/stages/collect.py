"""`palimpsest stage collect`: what the stages of some runs recorded, put together. No torch."""

from __future__ import annotations

import json

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.runs import Method, Recorded, Shared, Units, each_run


def command(
    study: StudyFolder, code: CodeFile, method: Method, shared: Shared, units: Units, recording: Recorded
) -> None:
    """Write steps, outcome and what was recorded of each run, and telemetry/METHOD/UNIT.parquet."""
    job = begin(study, "collect", code)
    from palimpsest.training.collect import collect_run

    for run_job, run, spec in each_run(job, method, shared, units):
        collect_run(run_job, run, [stage["stage"] for stage in spec["stages"]], json.loads(recording))
